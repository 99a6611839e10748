package oracle

import (
	"encoding/json"
	"slices"
	"strings"
)

// This file is the closed list of what may differ from the recorded Spark.
// Every entry gives the expectation that takes the recorded one's place.

// nullBatchRows: a batch without an RDD is an empty batch for every operator.
// Spark cannot generate the job of such a batch when the operator is built on
// transform (count, union, repartition …: recorded as null and an error), and
// gives nothing at all where it is not. mapWithState already treats it as
// empty, so its recorded outputs stand.
//
// It returns what an empty batch gives, ok=false when the batch was not null
// or the operator's recorded output stands.
func nullBatchRows(c *Case, batch int) (rows []Row, ok bool) {
	if !at(c.Batches, batch).Null && !at(c.Batches2, batch).Null {
		return nil, false
	}
	switch c.Op {
	case "mapWithState":
		return nil, false
	case "updateStateByKey": // what it gives of older state is recorded
		if outs, err := c.OutputRows(); err == nil && batch < len(outs) && !outs[batch].Null {
			return nil, false
		}
		return nil, true
	case "window", "reduceByWindow", "countByWindow", "countByValueAndWindow", "reduceByKeyAndWindow", "groupByKeyAndWindow":
		return nil, false // Spark's windows leave out what has no RDD
	case "join", "leftOuterJoin", "rightOuterJoin", "fullOuterJoin", "cogroup", "transformWith":
		if c.Config.LeftWindowMs > 0 {
			return nil, false
		}
		return joinedRows(c.Op, at(c.Batches, batch).List, at(c.Batches2, batch).List), true
	case "count":
		return []Row{Row("0")}, true
	case "glom":
		for range max(1, c.Config.InputPartitions) {
			rows = append(rows, Row("[]"))
		}
		return rows, true
	case "glomSizesAfterRepartition":
		for range max(1, c.Config.Partitions) {
			rows = append(rows, Row("0"))
		}
		return rows, true
	case "union": // the other side still has its records
		return append(append(rows, at(c.Batches, batch).List...), at(c.Batches2, batch).List...), true
	default:
		return nil, true
	}
}

// keepsInitial says that Spark keeps the initial state of an updateStateByKey for a
// later batch: the first ones have no RDD, and it gives nothing in them. By the rule
// above they are empty batches, in which the function is called for the initial keys,
// so that later outputs may differ too. replayUpdates works out both.
func keepsInitial(c *Case) bool {
	return c.Op == "updateStateByKey" && c.Config.InitialState != nil && at(c.Batches, 0).Null
}

// leavesOut says that Spark's slice leaves a batch out: it has no RDD.
func leavesOut(c *Case, batch int) bool { return at(c.Batches, batch).Null }

// stopsAtFailure: Spark goes on and fails every later batch (it computes the
// lost state again, and fails again); Statemill stops with the error at the
// failing batch, and the state of the batch before it is the newest readable
// one. Only an error of the user's function is meant: job generation errors of
// null batches are the entry above.
func stopsAtFailure(c *Case) (batch int, text string) {
	switch {
	case c.Op == "mapWithState":
		return c.FailingBatch()
	case windowReplayer(c.Op) != nil:
		// What leaves an inverse window must be in its result.
		if batch, text := c.FailingBatch(); strings.Contains(text, "Neither previous window has value for key") {
			return batch, text
		}
	}
	return 0, ""
}

// offSlide says that no window ends in batch i (from 0), so that there is no output.
func offSlide(c *Case, i int) bool {
	return c.Config.SlideMs > 0 && batchTime(c, i).UnixMilli()%c.Config.SlideMs != 0
}

// sizes gives how many sizes there are and their sum: those after a repartition
// depend on Spark's random start of its round robin, so no more can be asserted.
func sizes(rows []string) (n, sum int, err error) {
	for _, r := range rows {
		var v int
		if err := json.Unmarshal([]byte(r), &v); err != nil {
			return 0, 0, err
		}
		sum += v
	}
	return len(rows), sum, nil
}

// skipReason names what a case needs that is not there yet; "" when it runs.
func skipReason(c *Case) string {
	if !Exists(c.Op) {
		return "operator " + c.Op + " does not exist yet"
	}
	return ""
}

// joinedRows is what a join, cogroup or subtractByKey gives of two lists of pairs of
// integers: where one side of a batch has no RDD, Spark gives nothing.
func joinedRows(op string, left, right []Row) (rows []Row) {
	values := func(list []Row) (keys []string, of map[string][]int64) {
		of = map[string][]int64{}
		for _, row := range list {
			if p, err := pair[int64](row); err == nil {
				keys, of[p.Key] = append(keys, p.Key), append(of[p.Key], p.Value)
			}
		}
		return keys, of
	}
	lk, l := values(left)
	rk, r := values(right)
	keys := append(lk, rk...)
	slices.Sort(keys)
	add := func(v ...any) {
		if b, err := json.Marshal(v); err == nil {
			rows = append(rows, b)
		}
	}
	for _, k := range slices.Compact(keys) {
		ls, rs := l[k], r[k]
		if op == "cogroup" {
			add(k, shown(ls), shown(rs))
			continue
		}
		for _, v := range ls {
			for _, w := range rs {
				if op != "transformWith" {
					add(k, v, w)
				}
			}
			switch {
			case rs != nil:
			case op == "transformWith":
				add(k, v)
			case op == "leftOuterJoin" || op == "fullOuterJoin":
				add(k, v, nil)
			}
		}
		for _, w := range rs {
			if ls == nil && (op == "rightOuterJoin" || op == "fullOuterJoin") {
				add(k, nil, w)
			}
		}
	}
	return rows
}
