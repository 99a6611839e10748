package oracle

import "encoding/json"

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

// stopsAtFailure: Spark goes on and fails every later batch (it computes the
// lost state again, and fails again); Statemill stops with the error at the
// failing batch, and the state of the batch before it is the newest readable
// one. Only an error of the user's function is meant: job generation errors of
// null batches are the entry above.
func stopsAtFailure(c *Case) (batch int, text string) {
	if c.Op != "mapWithState" {
		return 0, ""
	}
	return c.FailingBatch()
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
