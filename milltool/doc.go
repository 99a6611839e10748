// Package milltool is the statemill state tool: it lists, prints, compares,
// checks, repairs, rescales and forks the state that jobs have committed to a
// checkpoint root, without the job and without its Go types.
//
// [Run] is the tool as a function of its arguments and writers; package
// cmd/statemill is a program of nothing else. [Main] gives any program the same
// commands for its own job, and with them replay.
//
// # Guarantees
//
//   - Reading commands write nothing and take no lock: they work on the root of
//     a running job without its notice. A file that the job deletes meanwhile
//     makes them start again from the newest commit.
//   - Nothing is printed before all of it was read and compared with its
//     checksums: what is printed is what was committed, or there is an error.
//   - Commands that write (repair, rescale, fork) create files and never replace
//     or delete one. repair and rescale become the owner of the root as a run
//     does, so a running job keeps them out; fork only reads the old root.
//   - Damaged and hostile roots end in an error that names the file.
//
// Exit codes: 0 for success, 1 for a failure or a finding, 2 for wrong usage.
// Results go to the standard output: tables for people, with -json one JSON
// document or one a line; errors go to the standard error.
//
// It does not run jobs, but for the one epoch of replay, and knows no server.
package milltool
