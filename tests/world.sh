# One environment for every suite.  Sourced with $binary set.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
# Where OpenBLAS is older than the CPU, the program restarts itself with newer kernels.  Once is enough.
core=$(ATTNSCOPE_DEVICE_LIBRARY=/nowhere.so "$binary" run full -n 8 -d 4 --json 2>/dev/null |
       sed -n 's/.*"openblas_coretype":"\([A-Za-z]*\)".*/\1/p')
[ -z "$core" ] || export OPENBLAS_CORETYPE="$core"
# A dot in a pattern is one character, also of text in UTF-8, on machines without a locale too.
export LC_ALL=C.UTF-8
# No suite reads a time closer than its sign; one that does unsets this.
export ATTNSCOPE_TIMED_SECONDS=0.002
# Standard error is the same on a slow machine and on a fast one.
export ATTNSCOPE_SILENT_SECONDS=1000000
# Lessons of the machine are no part of a test.
export XDG_DATA_DIRS=/nowhere
