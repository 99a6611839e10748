// Package batchfiles keeps what one batch of a stream gave in one folder of files,
// as Spark's saveAsTextFiles and saveAsObjectFiles do, and reads it back.
//
//	<prefix>-<batch time in ms>[.<suffix>]/_PARTS       how many parts, and of what form
//	                                      /part-00000   one for each partition, empty ones too
//	                                      /part-00001
//	                                      /_SUCCESS     all parts, with rows, sizes and sums
//
// [SaveText] writes lines of text, [SaveRecords] records of any type that has a
// codec; [Records] and [Lines] give a folder as a dataset again, and [List] tells
// which batches there are. Names are those of a [vfs.Store]: a folder of the disk
// ([vfs.NewDir]) or an object store. [Name] makes a folder's name.
//
// # What holds
//
// A batch is there exactly if its _SUCCESS is: that is written last, when all parts
// are durable, and names them. A folder without one is to be ignored; it is of a save
// that is under way, or that was broken off and has not been done again. So are names with
// ".tmp." in them, which a put that was broken off leaves in a folder of the disk; those of
// parts are gone when _SUCCESS comes.
//
// Every file is created exclusively and none is ever replaced. To save a batch again is
// no error: files with the same bytes are kept, missing ones are made. Where a file is
// there with other bytes nothing is changed, and the error is a [*DiffersError]; a
// folder whose parts are of two minds gets no _SUCCESS. Since _PARTS fixes the number of
// parts before there is any, a run that was thought dead and wakes up can add to a
// folder only what the new one would have written, whatever it is about to do.
//
// An error leaves a folder that the same save can finish. Failures of the store are
// *FileError, and may pass; no call here tries again by itself.
//
// _PARTS and _SUCCESS are JSON on one line, with a sum of their own at the end. Every
// changed byte of a batch is found when it is read.
//
// # What it does not do
//
// It knows no epochs and no commits: a batch is there as soon as it is saved, which is
// before its epoch is committed. Outputs that appear with the commit, in one act, are
// those of package sink. It deletes nothing but what broken-off puts left in the folder
// that it completes; old batches are the user's.
package batchfiles
