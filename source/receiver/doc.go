// Package receiver makes a replayable source of what cannot be read twice:
// sockets, queues that forget, HTTP requests, sensors. What a [Receiver] takes in
// goes to a log in a local directory first, and the job reads the log.
//
// # The promise
//
// When store has returned nil, the records are durable: they are read by exactly
// one epoch's plan, whatever crashes in between, as long as the directory is
// kept. So acknowledge to the sender after store, never before. A record whose
// store did not return may be in the log or not; a sender that sends it again
// then makes it twice, as with every log.
//
// Which plans there were, the checkpoint knows; the log does not. So "exactly one" needs
// a job with a checkpoint, and the same one as long as the directory is used:
//
//   - A job without a checkpoint begins, at every start, at the oldest record that is
//     still kept. Whole files of records go some time after their epochs, so it reads
//     part of what the run before had read once more, and none of what went.
//   - So does a job with a new checkpoint over an old directory: what an earlier one had
//     read is partly gone, and the rest is read again.
//   - A checkpoint over a new or another directory is refused with a [DamagedError] if
//     its last plan is of offsets that are not there; if they are, by chance, the
//     records of other offsets are taken for its own.
//
// Give a job that begins anew a new directory, unless it shall read what is left.
//
// # Main types
//
// [Receiver] is what a user writes, or [Lines] for a TCP server that sends lines.
// [New] joins it with a directory and a codec into a [Source], which is a
// source.Source with one partition; offsets number the records from 0.
//
// # How it works
//
// Calls of store that come at the same time share one write and one sync. The log
// is a row of segment files. A block of records is written with a checksum, and
// synced before the next one is begun; so at a start a block that is torn, with nothing
// behind it, was never acknowledged and is left out, and one that is not whole and has
// anything behind it is a [DamagedError]. A segment is never written to after a
// failure or a restart: the next one begins, at the offset up to which all is durable,
// and what the older one holds from there on does not exist. Segments go when all their
// records are in committed epochs, the oldest first; the newest always stays, as it
// knows the next offset. What failures leave behind goes too, at the latest at the
// next start.
//
// One source at a time uses a directory; a lock sees to it where locks exist. The
// directory belongs on the local disk of the machine that receives, and to the
// same job for ever: offsets of another log are other records.
//
// # What it does not do
//
// It does not replicate: when the disk is lost, so are the records on it that no
// epoch had read. It does not know senders, so it cannot tell a record that was
// sent twice.
package receiver
