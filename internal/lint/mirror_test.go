package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sparkCalls are the public calls of Spark's streaming classes; docs/spark.md has a line for each.
const sparkCalls = `
	getOrCreate getActive getActiveOrCreate jarOfClass start stop awaitTermination awaitTerminationOrTimeout getState
	sparkContext remember checkpoint addStreamingListener removeStreamingListener receiverStream actorStream socketStream
	socketTextStream rawSocketStream fileStream textFileStream binaryRecordsStream queueStream union transform

	onStreamingStarted onBatchSubmitted onBatchStarted onBatchCompleted onOutputOperationStarted
	onOutputOperationCompleted onReceiverStarted onReceiverError onReceiverStopped

	map flatMap filter mapPartitions glom repartition union count countByValue reduce transform transformWith print
	foreachRDD slice cache persist window reduceByWindow countByWindow countByValueAndWindow saveAsTextFiles
	saveAsObjectFiles checkpoint slideDuration dependencies compute context

	groupByKey reduceByKey combineByKey groupByKeyAndWindow reduceByKeyAndWindow mapWithState updateStateByKey mapValues
	flatMapValues cogroup join leftOuterJoin rightOuterJoin fullOuterJoin saveAsHadoopFiles saveAsNewAPIHadoopFiles

	function initialState numPartitions partitioner timeout exists get getOption update remove isTimingOut stateSnapshots

	createDirectStream createRDD offsetRanges commitAsync Subscribe SubscribePattern Assign PreferConsistent
	PreferBrokers PreferFixed PerPartitionConfig`

var (
	codeSpan = regexp.MustCompile("`[^`]+`")
	dotted   = regexp.MustCompile(`(?:\b([A-Za-z]\w*)\.)?\b([A-Z]\w*)\b`)
)

// mirrorFaults checks the tables of a mirror page: column one has Spark's calls, the others name ours.
func mirrorFaults(t *Tree, page string) (faults []string) {
	names := publicNames(t)
	var spark strings.Builder
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		spark.WriteString(cells[1])
		for _, span := range codeSpan.FindAllString(strings.Join(cells[2:], "|"), -1) {
			for _, m := range dotted.FindAllStringSubmatch(span, -1) {
				of, name := m[1], m[2]
				switch of {
				case "iter", "context", "time":
					continue
				case "ssc":
					of = "StreamingContext"
				}
				if key := strings.TrimPrefix(of+"."+name, "."); !names[key] {
					faults = append(faults, "no public name "+key)
				}
			}
		}
	}
	for call := range strings.FieldsSeq(sparkCalls) {
		if !regexp.MustCompile(`\b` + call + `\b`).MatchString(spark.String()) {
			faults = append(faults, "no line for Spark's "+call)
		}
	}
	return faults
}

// publicNames gives the exported names of the rooms that a job sees: alone, behind their package, and methods and fields
// behind their type.
func publicNames(t *Tree) map[string]bool {
	names := map[string]bool{}
	// What dstream calls by another name.
	alias := map[string]string{"Spec": "StateSpec"}
	add := func(of, name string) {
		if of = strings.TrimPrefix(of, "*"); alias[of] != "" {
			of = alias[of]
		}
		if ast.IsExported(name) {
			names[name], names[of+"."+name] = true, true
		}
	}
	for _, f := range t.Files {
		if f.Test || !under(f.Room, "dstream", "staterdd", "rdd", "kafka", "source", "batchfiles") || strings.Contains(f.Room, "internal") {
			continue
		}
		pkg := f.Syntax.Name.Name
		for _, d := range f.Syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				of := pkg
				if d.Recv != nil {
					of = typeName(d.Recv.List[0].Type)
				}
				add(of, d.Name.Name)
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							add(pkg, n.Name)
						}
					case *ast.TypeSpec:
						add(pkg, s.Name.Name)
						if st, ok := s.Type.(*ast.StructType); ok {
							for _, field := range st.Fields.List {
								for _, n := range field.Names {
									add(s.Name.Name, n.Name)
								}
							}
						}
					}
				}
			}
		}
	}
	return names
}

// The mirror page for users of Spark names nothing that does not exist, and leaves no call out.
func TestMirror(t *testing.T) {
	root := repositoryRoot(t)
	tree, err := Load(root)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "spark.md"))
	require.NoError(t, err)
	require.Empty(t, mirrorFaults(tree, string(page)))

	// The test can fail.
	require.Equal(t, []string{"no public name StreamingContext.Remember", "no public name kafka.Nothing"},
		mirrorFaults(tree, string(page)+"\n| `remember` | `ssc.Remember(d)`, `kafka.Nothing` | |\n"))
	require.Contains(t, mirrorFaults(tree, strings.ReplaceAll(string(page), "slideDuration", "")), "no line for Spark's slideDuration")
}
