package rdd

// NewPoolsOf makes pools whose blocks hold only rows rows.
func NewPoolsOf(rows int) *Pools { return &Pools{rows: rows} }

// For the tests of Repartition.
var (
	SparkStart  = sparkStart
	JavaNextInt = javaNextInt
)

// FreeRows is the number of row blocks for K and V that wait for reuse, and
// whether any of them still references a key.
func FreeRows(p *Pools) (n int, pinned bool) {
	list := listOf[Rows[string, int]](p)
	var got []*Rows[string, int]
	for {
		b := list.Get()
		if cap(b.from) == 0 { // a new one: blocks that were used have room for marks
			break
		}
		got = append(got, b)
		for _, k := range b.Key {
			pinned = pinned || k != ""
		}
	}
	for _, b := range got {
		list.Put(b)
	}
	return len(got), pinned
}

// HasPointersOf is hasPointers of a type.
var HasPointersOf = hasPointers
