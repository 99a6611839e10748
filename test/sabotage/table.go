package main

// table names every break in the source and the test that must catch it; the oracle alone does not count, for it cannot
// see a missing undo.
var table = []Break{}
