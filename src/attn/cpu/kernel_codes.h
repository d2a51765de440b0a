/* attn/cpu/kernel_codes.h -- the part of kernel_body.h that works on codes of CODE_BITS bits. */
typedef unsigned long long Word __attribute__((vector_size(sizeof(Wide))));
typedef int32_t Lane __attribute__((vector_size(sizeof(Vec))));

/* Bits set in each word. */
static inline TARGET __attribute__((always_inline)) Word word_bits(Word x)
{
    x -= (x >> 1) & 0x5555555555555555;
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    x += x >> 8;
    x += x >> 16;
    return (x + (x >> 32)) & 127;
}

/* A distance and, below it, its centre: the least of them is the nearest, ties the lowest. */
static inline TARGET __attribute__((always_inline)) void word_nearest(const int64_t *codes,
                                                                      const int64_t *centres,
                                                                      int64_t of, int32_t *index)
{
    Word own, best = (Word){ 0 } + ~0ull;

    __builtin_memcpy(&own, codes, sizeof(own));
    for (int64_t c = 0; c < of; c++) {
        Word apart = (word_bits(own ^ (unsigned long long)centres[c]) << 32) +
                     (unsigned long long)c;
        Word less = (Word)(apart < best);

        best = (apart & less) | (best & ~less);
    }
    for (int x = 0; x < WIDE; x++)
        index[x] = (int32_t)(best[x] & 0xffffffff);
}

static TARGET void codes_nearest(const int64_t *codes, int64_t count, const int64_t *centres,
                                 int64_t of, int32_t *index)
{
    int64_t tail[WIDE] = { 0 };
    int32_t last[WIDE];

    for (; count >= WIDE; count -= WIDE, codes += WIDE, index += WIDE)
        word_nearest(codes, centres, of, index);
    for (int64_t i = 0; i < count; i++)
        tail[i] = codes[i];
    word_nearest(tail, centres, of, last);
    for (int64_t i = 0; i < count; i++)
        index[i] = last[i];
}

static TARGET void codes_bit_sums(const int64_t *codes, const int32_t *cluster, int64_t count,
                                  int32_t *ones)
{
    Lane place;

    for (int x = 0; x < WIDTH; x++)
        place[x] = x;
    for (int64_t i = 0; i < count; i++)
        for (int x = 0; x < CODE_BITS; x += WIDTH) {
            int32_t *to = ones + (int64_t)cluster[i] * CODE_BITS + x, half;
            Lane     now;

            half = (int32_t)((uint64_t)codes[i] >> x);
            __builtin_memcpy(&now, to, sizeof(now));
            now += (half >> place) & 1;
            __builtin_memcpy(to, &now, sizeof(now));
        }
}
