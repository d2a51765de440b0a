/* attn/cuda/host/graph.h -- a run as a CUDA graph: captured once, replayed many times.
 *
 * A replay repeats the device's work at the same addresses, without the host's loops, launches
 * and waits.  So a run can be replayed only if the host reads no result of the device; a run that
 * reads reports it by op_wait.  run_graph_new replays each graph twice and compares it with the
 * run bit by bit.
 *
 * Used where WAY_GRAPHS is taken (attn/cuda/host/library.h).  Only one thread uses the device
 * meanwhile (device_hold).
 */
#ifndef ATTN_CUDA_HOST_GRAPH_H
#define ATTN_CUDA_HOST_GRAPH_H

#include "attn/cuda/host/library.h"
#include "attn/run.h"

typedef struct RunGraph RunGraph;

/* Runs without views do not wait for each operation. */
bool device_goes_ahead(const Device *device);
/* Timed runs are replayed as graphs. */
bool device_wants_graphs(const Device *device);

/* The graph of spec, which runs twice in `arena` without spec's observers.  The graph uses the
 * arena until run_graph_free.  NULL: `why` gives the reason. */
RunGraph *run_graph_new(const RunSpec *spec, Arena *arena, char *why, size_t size);
bool      run_graph_replay(RunGraph *graph); /* starts and waits; false: the device failed */
/* The run's output; each replay writes it again. */
const Tensor *run_graph_output(const RunGraph *graph);
void      run_graph_free(RunGraph *graph);

#endif
