# One environment for every suite.  Sourced with $binary set.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
# An OpenBLAS older than the CPU falls back to its slowest kernels, and the program warns of it in
# the output that tests compare.  Name the newest kernels that both have.
if ATTNSCOPE_DEVICE_LIBRARY=/nowhere.so "$binary" doctor 2>&1 | grep -q 'OpenBLAS runs its'; then
    if grep -qw avx512f /proc/cpuinfo; then OPENBLAS_CORETYPE=SkylakeX; else OPENBLAS_CORETYPE=Haswell; fi
    export OPENBLAS_CORETYPE
fi
