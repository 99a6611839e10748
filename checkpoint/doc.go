// Package checkpoint keeps what a job must not lose: which records each epoch
// reads, which state files each version consists of, and which run owns the
// root. It holds the documents of a root, a reader of them that takes no lock,
// and the session of a run, which carries out the epoch protocol of package
// protocol over a [vfs.Store].
//
// # Layout of a root
//
//	lock                                   held by the run, on stores with locks
//	owner/<term>                           [Owner]: one per run, terms without holes
//	metadata/<seq>                         [Metadata]: operators, layouts, types
//	offsets/<N>                            [Plan]: what epoch N reads
//	state/<number>/<part>/<N>.<term>.delta     what version N changed, or a base
//	state/<number>/<part>/<N>.<term>.snapshot  all of version N, a cache
//	state/<number>/r<k>/<part>/…           the same after k changes of the partition count
//	counts/<N>.<term>                      [Counts]: what a run counted in epoch N, if the job counts
//	commits/<N>                            [Commit]: which files make version N
//
// Numbers are decimal without padding. Operators go by numbers, as their names
// need not be fit for files. Documents are one line of JSON each, whose last
// member is a checksum of all bytes before it.
//
// # Main types
//
// [Root] reads a root without a lock and writes nothing: for loads, tools and
// pages; [Root.Files] chooses the files of a version, [ReadRows] reads them
// without Go types. [Open] makes a run the owner and gives its [Session], which is told
// each step of an epoch in its order: Plan, Deltas, Outputs, Sinks, Commit.
//
// # Guarantees
//
//   - Nothing is ever replaced. Every name is created exclusively, and the
//     creation of commits/N is the one act that decides epoch N.
//   - What is in force is what the newest commit names. A metadata file, a plan
//     or a state file that no commit names is never built upon, but for a plan,
//     which is redone as planned.
//   - A damaged document is an error that names the file, the fault and the next
//     step; it is never taken for a good or an absent one.
//   - A start that is refused has written nothing and fenced nobody.
//   - A run that is no longer the owner finds out before it reports an epoch, and
//     leaves no file that a later run would have to believe.
//
// # What it does not do
//
// It knows no Go type of a key or state, computes no epoch, starts no goroutine
// that outlives a call, and deletes nothing; [Deletable] says what may be.
package checkpoint
