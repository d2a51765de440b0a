/* attn/cuda/host/graph.h -- a run as a CUDA graph: captured once, replayed as often as one likes.
 *
 * A replay is what the device does in the run, at the same addresses, without the host between:
 * neither its loops nor its launches nor its waits.  So a run can be replayed only when the host
 * read nothing that the device made; a run that reads says what for (op_wait).  Each graph is
 * replayed twice and compared with the run bit by bit before it is handed out.
 *
 * Where WAY_GRAPHS is taken (attn/cuda/host/library.h).  One thread uses the device meanwhile
 * (device_hold).
 */
#ifndef ATTN_CUDA_HOST_GRAPH_H
#define ATTN_CUDA_HOST_GRAPH_H

#include "attn/cuda/host/library.h"
#include "attn/run.h"

typedef struct RunGraph RunGraph;

/* Runs without views need not wait for each operation ... */
bool device_goes_ahead(const Device *device);
/* ... and timed ones are to be replayed as graphs. */
bool device_wants_graphs(const Device *device);

/* Of spec, which is run twice in `arena`; spec's observers hear nothing of it.  The arena is the
 * graph's until run_graph_free.  NULL: why says why not. */
RunGraph *run_graph_new(const RunSpec *spec, Arena *arena, char *why, size_t size);
bool      run_graph_replay(RunGraph *graph); /* begins it and waits; false: the device failed */
/* The run's output, which each replay makes again. */
const Tensor *run_graph_output(const RunGraph *graph);
void      run_graph_free(RunGraph *graph);

#endif
