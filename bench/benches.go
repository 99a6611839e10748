package main

// The numbers of keys and records of the targets.
const (
	manyKeys  = 1_000_000
	fewKeys   = 10_000
	batchSize = 200_000
)

// benches are the speed targets, in the order in which they are printed.
var benches = []*bench{}
