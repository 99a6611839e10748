// Tablejoin sets beside each order what two tables know about its product: one
// that is fixed, and one that changes while the job runs.
//
// The names of the products are a fixed table: Parallelize and Constant make a
// stream of it that has the same rows in every batch, and LeftOuterJoin puts the
// name beside each order, or nothing where the table has none. The table is laid
// out once a run, not once a batch.
//
// The prices are a stream of changes, and the table is kept in state: the newest
// price of each product. Orders and changes are merged into one stream by product
// (Union) and go through one mapWithState, in which a change sets the state and an
// order reads it. So an order costs one look at the state, however large the table
// is; a join with StateSnapshots would go over the whole table in every batch. In a
// batch changes come before orders, because Union has them first. The table starts
// with the prices of InitialState.
//
//	go run ./examples/tablejoin
//	go run ./examples/tablejoin -checkpoint /tmp/tablejoin -interval 1s   # Ctrl-C, and again
//
// Both inputs are a small script, one list a batch, so that the program needs
// nothing and ends by itself; it prints a line for every order. With -checkpoint
// the table of prices outlives the process: the next run goes on with the prices
// that the last one had. (A fixed table is not state: it is read at each start.)
//
// job.go is the Statemill job, main.go the script and the printing.
package main
