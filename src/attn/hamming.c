/* hamming.c -- see hamming.h. */
#include "attn/hamming.h"

#include <string.h>

#include "attn/run.h"

#define ROWS 256 /* codes of one item of work */
#define BITS 64

static const int64_t *codes_of(const Tensor *t, int64_t head)
{
    return (const int64_t *)t->data + head * t->shape[1];
}

/* Bits set, without a table or an instruction that a machine may lack. */
static int32_t bits_set(uint64_t x)
{
    x -= (x >> 1) & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + ((x >> 2) & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (int32_t)((x * UINT64_C(0x0101010101010101)) >> 56);
}

typedef struct Search {
    const Tensor *codes, *centres;
    Tensor       *cluster;
    int64_t       blocks; /* of a head */
} Search;

static int32_t nearest(uint64_t code, const int64_t *centres, int64_t count)
{
    int32_t best = 0, least = BITS + 1;

    for (int64_t c = 0; c < count && least > 0; c++) {
        int32_t apart = bits_set(code ^ (uint64_t)centres[c]);

        if (apart < least) {
            least = apart;
            best = (int32_t)c;
        }
    }
    return best;
}

static void search_item(void *context, int64_t item, int worker)
{
    const Search  *job = context;
    int64_t        head = item / job->blocks, first = item % job->blocks * ROWS;
    int64_t        n = job->codes->shape[1], last = first + ROWS < n ? first + ROWS : n;
    const int64_t *codes = codes_of(job->codes, head), *centres = codes_of(job->centres, head);

    (void)worker;
    for (int64_t i = first; i < last; i++)
        tensor_i32(job->cluster)[head * n + i] =
            nearest((uint64_t)codes[i], centres, job->centres->shape[1]);
}

void hamming_nearest(Run *r, Tensor codes, Tensor centres, Tensor cluster)
{
    Search job = { .codes = &codes, .centres = &centres, .cluster = &cluster,
                   .blocks = (codes.shape[1] + ROWS - 1) / ROWS };

    if (!run_failed(r))
        threads_run(r->threads, codes.shape[0] * job.blocks, search_item, &job);
}

/* ones [C,BITS] and members [C] of one head. */
static void count_bits(const int64_t *codes, const int32_t *cluster, int64_t n, int64_t bits,
                       int64_t *ones, int64_t *members)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t *own = ones + cluster[i] * BITS;

        members[cluster[i]]++;
        for (int64_t t = 0; t < bits; t++)
            own[t] += codes[i] >> t & 1;
    }
}

static int64_t majority(const int64_t *ones, int64_t members, int64_t bits)
{
    int64_t code = 0;

    for (int64_t t = 0; t < bits; t++)
        if (2 * ones[t] > members)
            code |= INT64_C(1) << t;
    return code;
}

bool hamming_majority(Run *r, Tensor codes, Tensor cluster, int64_t bits, Tensor centres)
{
    int64_t   n = codes.shape[1], count = centres.shape[1];
    ArenaMark mark = arena_mark(r->arena);
    int64_t  *ones = run_alloc(r, count * (BITS + 1), sizeof(*ones));
    bool      moved = false;

    for (int64_t head = 0; head < codes.shape[0] && !run_failed(r); head++) {
        int64_t *own = (int64_t *)centres.data + head * count, *members = ones + count * BITS;

        memset(ones, 0, (size_t)(count * (BITS + 1)) * sizeof(*ones));
        count_bits(codes_of(&codes, head), tensor_i32(&cluster) + head * n, n, bits, ones,
                   members);
        for (int64_t c = 0; c < count; c++) {
            int64_t code = members[c] ? majority(ones + c * BITS, members[c], bits) : own[c];

            moved |= code != own[c];
            own[c] = code;
        }
    }
    arena_release(r->arena, mark);
    return moved;
}
