package dstream

// CurrentVersion gives the newest committed version of an operator, a
// *staterdd.MapWithStateRDD.
func CurrentVersion(ssc *StreamingContext, operator string) any {
	n, err := ssc.run.operator(operator)
	if err != nil {
		return err
	}
	return n.op.(interface{ version() any }).version()
}

func (o *statefulOp[K, V, S, M]) version() any { return o.current }

// Done is closed when the run has ended, and not before.
func Done(ssc *StreamingContext) <-chan struct{} { return ssc.run.done }

// Aborted says whether the run was aborted.
func Aborted(ssc *StreamingContext) bool { return ssc.run.hard.Err() != nil }
