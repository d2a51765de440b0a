// attend_warpgroup.cu -- attention by warpgroups, called: whether this GPU and this driver do it, and
// maps of the keys and values for the hardware's copies.  See attend_warpgroup.cuh.
#include "attn/cuda/kernels/declined.cuh"
#include "attn/cuda/kernels/portable.cuh"


static char reason[256] = "not asked for";

const char *warpgroup_reason(void)
{
    return reason;
}

#define decline(...) declined(reason, WARPGROUP_DECLINED, __VA_ARGS__)

#ifdef WITHOUT_WARPGROUP

extern "C" int call_attend_warpgroup(const WarpgroupCall *)
{
    return decline("not compiled in: CUDA_ARCH has no 90");
}

#else
#include "attn/cuda/kernels/attend_warpgroup.cuh"

typedef decltype(&cuTensorMapEncodeTiled) MapMaker;

// sm_90a code runs on capability 9.0 and nothing else.
static int find_maker(MapMaker *maker)
{
    cudaDriverEntryPointQueryResult found;
    int   index = 0, major = 0, minor = 0;
    void *entry = NULL;

    if (cudaGetDevice(&index) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess)
        return decline("the device does not say what it is");
    if (major != 9 || minor != 0)
        return decline("made for compute capability 9.0, this is %d.%d", major, minor);
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                         cudaEnableDefault, &found) != cudaSuccess || !entry)
        return decline("the driver has no cuTensorMapEncodeTiled");
    *maker = (MapMaker)entry;
    return 0;
}

static int map_tiles(MapMaker make, const Packed &t, CUtensorMap *map)
{
    cuuint64_t size[3] = { (cuuint64_t)t.size, (cuuint64_t)t.rows, (cuuint64_t)t.heads };
    cuuint64_t stride[2] = { (cuuint64_t)(2 * t.size), (cuuint64_t)(2 * t.size * t.rows) };
    cuuint32_t box[3] = { 64, KEYS, 1 }, each[3] = { 1, 1, 1 };
    int        code = make(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 3, t.data, size, stride, box, each,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                           CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);

    return code ? decline("no map of [%lld, %lld, %lld] numbers: code %d", (long long)t.heads,
                          (long long)t.rows, (long long)t.size, code) : 0;
}

template <typename Form, int SIZE>
static int launch(const MatrixAttendCall &a, const TileMaps &maps)
{
    constexpr int bytes = Stage<SIZE>::SHARED_BYTES;
    dim3          grid((unsigned)a.item_count, a.tiles.per_head ? 1u : grid_of(a.heads));

    if (ALLOW_SHARED((attend_groups<Form, SIZE>), bytes) != cudaSuccess)
        return cudaGetLastError();
    return LAUNCH((attend_groups<Form, SIZE>), grid, THREADS, bytes, a, maps);
}

template <typename Form>
static int launch_form(const MatrixAttendCall &a, const TileMaps &maps)
{
    return a.size == 64 ? launch<Form, 64>(a, maps) : launch<Form, 128>(a, maps);
}

extern "C" int call_attend_warpgroup(const WarpgroupCall *call)
{
    const MatrixAttendCall &a = call->attend;
    MapMaker                make = NULL;
    TileMaps                maps;
    int                     code = find_maker(&make);

    if (code || !a.heads)
        return code ? code : (decline("there"), 0);
    if ((a.size != 64 && a.size != 128) || a.tiles.height != HEIGHT || a.distance.data ||
        a.tiles.extra || !(a.scale > 0))
        return decline("made for 64 or 128 columns, a scale above 0 and nothing added to scores");
    code = map_tiles(make, a.k, &maps.k);
    code = code ? code : map_tiles(make, a.v, &maps.v);
    if (code)
        return code;
    return call->arithmetic == ARITHMETIC_BF16 ? launch_form<Bf16>(a, maps)
                                               : launch_form<F16>(a, maps);
}

#endif
