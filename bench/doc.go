// Command bench measures Statemill's speed targets as ratios against fixed baselines, in one run on one machine.
//
// Each benchmark prints one JSON line: the ratio, its target, whether it was met, and both sides' raw numbers. Ratios are
// what counts, as both sides see the same machine in the same second; nanoseconds are there to be read.
//
// Method. The command runs itself -procs times (5), one process for one benchmark; each process builds both sides, then
// measures -runs (7) interleaved runs of several batches of 200,000 records, in alternating order. A process's figure is
// the quotient of the two sides' medians; the benchmark's figure is the median of the processes, printed with its range.
// Work on one core is judged on CPU time of the process, garbage collection on all cores included; work on two cores on
// wall time, and is void if a side kept fewer than 1.7 cores busy.
//
// Data: 10,000 or 1,000,000 uniform keys of 16 bytes. Every batch carries its own fresh copies of the key bytes, so that
// no side meets a stored key at the same address. The previous version of the state stays readable during a batch.
//
// The module is nested so that it may grow dependencies that users of the library do not see.
package main
