// Package exactlyonce runs whole jobs with exactly-once sinks: dead at every call to
// the file system, frozen and thawed at every call to an object store, with several
// sinks of several kinds and with functions that come out another way each time.
// Readers of the sinks must see every epoch once, as a run without faults writes it.
package exactlyonce
