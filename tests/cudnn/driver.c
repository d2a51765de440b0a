/* driver.c -- a libcuda.so.1 that takes any code and runs nothing: as much of one as cuDNN asks for
 * when it compiles a plan for a GPU that it was only told of.  All others fail (mk/cuda.mk).
 */
enum { SUCCESS = 0, NO_DEVICE = 100 };

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuCtxGetCurrent(void **context);
int cuGetErrorString(int code, const char **text);
int cuGetErrorName(int code, const char **text);
int cuLibraryLoadData(void **library);
int cuLibraryUnload(void *library);
int cuLibraryGetKernel(void **kernel);
int cuKernelGetFunction(void **function);

static char something;

int cuInit(unsigned flags)
{
    (void)flags;
    return NO_DEVICE;
}

int cuDriverGetVersion(int *version)
{
    *version = 13000;
    return SUCCESS;
}

int cuDeviceGetCount(int *count)
{
    *count = 0;
    return SUCCESS;
}

int cuCtxGetCurrent(void **context)
{
    *context = 0;
    return SUCCESS;
}

int cuGetErrorString(int code, const char **text)
{
    *text = code ? "none of the tests' devices" : "no error";
    return SUCCESS;
}

int cuGetErrorName(int code, const char **text) { return cuGetErrorString(code, text); }

int cuLibraryLoadData(void **library)
{
    *library = &something;
    return SUCCESS;
}

int cuLibraryUnload(void *library)
{
    (void)library;
    return SUCCESS;
}

int cuLibraryGetKernel(void **kernel)
{
    *kernel = &something;
    return SUCCESS;
}

int cuKernelGetFunction(void **function)
{
    *function = &something;
    return SUCCESS;
}
