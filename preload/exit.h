// The end of the process: when teardown begins, and when the report is written.
#ifndef HOLDFAST_PRELOAD_EXIT_H_
#define HOLDFAST_PRELOAD_EXIT_H_

namespace holdfast::preload {

// Once a graph is there: what is freed after exit() began is teardown and no finding.
void WatchExit();

}  // namespace holdfast::preload

#endif  // HOLDFAST_PRELOAD_EXIT_H_
