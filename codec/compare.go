package codec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statemill/statemill/internal/sabotage"
)

// Compare says what has changed from the schema of stored values to that of the
// program's type, by the table in the package comment; nothing if they are
// stored alike. It holds for values that were written under old: if files of
// several schemas are kept, compare each of them.
func Compare(old, new Schema) []Change {
	c := &comparer{old: old, new: new, seen: map[[2]int]bool{}, way: "; change it back, or give a migration"}
	switch {
	case old.IsZero() || new.IsZero():
		if old.IsZero() != new.IsZero() {
			c.add(Incompatible, "", old.String(), new.String(), changedText(old.String(), new.String()))
		}
	case old.codec == "msgpack" && new.codec == "msgpack":
		c.widens = true
		c.row("", 0, 0)
	case builtIn(old.codec) && builtIn(new.codec):
		// Integers of one sign are varints, whatever their width.
		family, _ := old.types[0].kind.bits()
		c.widens = family != 'f'
		c.row("", 0, 0)
	case old.codec != new.codec:
		c.add(Incompatible, "", old.String(), new.String(), changedText(codecText(old), codecText(new)))
	case old.codec == keyCodec:
		c.way = "; change it back: keys are placed by their bytes"
		c.row("", 0, 0)
	case old.Fingerprint() != new.Fingerprint():
		c.add(Incompatible, "", old.String(), new.String(), changedText(old.String(), new.String())+
			"; a codec of your own whose bytes change needs another ID, and a migration from the old one")
	}
	return c.changes
}

type comparer struct {
	old, new Schema
	widens   bool   // the codec's decoder reads narrower forms too
	way      string // what to do about a change, after its text
	seen     map[[2]int]bool
	changes  []Change
}

func (c *comparer) add(class Class, path, from, to, text string) {
	c.changes = append(c.changes, Change{Class: class, Path: path, Old: from, New: to, Text: text})
}

func (c *comparer) row(path string, i, j int) {
	if c.seen[[2]int{i, j}] {
		return
	}
	c.seen[[2]int{i, j}] = true
	a, b := &c.old.types[i], &c.new.types[j]
	from, to := c.old.text(i), c.new.text(j)
	switch {
	case a.kind == b.kind && a.length == b.length:
		c.parts(path, a, b)
	case c.widens && c.wider(a, b):
		c.add(Compatible, path, from, to, "was widened from "+from+" to "+to)
	case c.widens && a.kind == kindArray && b.kind == kindSlice,
		c.widens && a.kind == kindByteArray && b.kind == kindBytes:
		c.add(Compatible, path, from, to, "was widened from "+from+" to "+to)
		if a.elem >= 0 {
			c.row(path+"[]", a.elem, b.elem)
		}
	case c.widens && b.kind == kindPointer && a.kind != kindPointer && a.kind != kindOwnMsgpack:
		c.add(Compatible, path, from, to, "was "+from+", is now a pointer; stored values are never nil")
		c.row(path, i, b.elem)
	default:
		c.add(Incompatible, path, from, to, changedText(from, to)+c.way)
	}
}

// wider reports whether every number of a is one of b, and b's decoder takes
// its bytes.
func (c *comparer) wider(a, b *typeRow) bool {
	fa, na := a.kind.bits()
	fb, nb := b.kind.bits()
	if fa == 'u' && fb == 'i' {
		return c.old.format == "msgpack" && na < nb // as varints they differ
	}
	return na > 0 && fa == fb && na < nb
}

func (c *comparer) parts(path string, a, b *typeRow) {
	switch a.kind {
	case kindMap:
		c.row(path+"[key]", a.key, b.key)
		c.row(path+"[]", a.elem, b.elem)
	case kindArray, kindSlice:
		c.row(path+"[]", a.elem, b.elem)
	case kindPointer:
		c.row(path, a.elem, b.elem)
	case kindStruct:
		c.named(path, a, b)
	case kindTuple:
		c.placed(path, a, b)
	}
}

// named compares fields that go by name: a new field takes the values of all
// its names.
func (c *comparer) named(path string, a, b *typeRow) {
	taken := make([]string, len(b.fields)) // the old field that each new one reads
	var gone []fieldRow
	for _, f := range a.fields {
		at := joinPath(path, f.name)
		j := slices.IndexFunc(b.fields, func(g fieldRow) bool { return g.name == f.name || slices.Contains(g.aliases, f.name) })
		if j < 0 {
			gone = append(gone, f)
			continue
		}
		g := b.fields[j]
		if taken[j] != "" {
			c.add(Incompatible, at, c.old.text(f.is), c.new.text(g.is),
				fmt.Sprintf("and %s would both be read into %s; take the alias away", taken[j], g.name))
			continue
		}
		taken[j] = f.name
		if g.name != f.name {
			c.add(Compatible, at, c.old.text(f.is), c.new.text(g.is), "was renamed to "+g.name+" by an alias")
		}
		c.row(at, f.is, g.is)
	}
	if sabotage.On("removed-field") {
		gone = nil
	}
	for _, f := range gone {
		c.add(Incompatible, joinPath(path, f.name), c.old.text(f.is), "",
			"("+c.old.text(f.is)+") was removed"+c.renameHint(f, b, taken)+"; keep it, or give a migration")
	}
	for j, g := range b.fields {
		if taken[j] == "" {
			c.add(Compatible, joinPath(path, g.name), "", c.new.text(g.is),
				"("+c.new.text(g.is)+") was added; stored values read it as zero")
		}
	}
}

// renameHint names the new fields that the removed one may live on in.
func (c *comparer) renameHint(gone fieldRow, b *typeRow, taken []string) string {
	var tags []string
	for j, g := range b.fields {
		if taken[j] == "" && c.old.text(gone.is) == c.new.text(g.is) {
			tags = append(tags, "`msgpack:"+strconv.Quote(g.name+",alias:"+gone.name)+"`")
		}
	}
	if len(tags) == 0 {
		return ""
	}
	return "; if it was renamed, say so by the tag " + strings.Join(tags, " or ")
}

// placed compares fields that go by position. Their names are not stored, but
// two fields that changed places would go unseen without them.
func (c *comparer) placed(path string, a, b *typeRow) {
	if len(a.fields) != len(b.fields) {
		c.add(Incompatible, path, strconv.Itoa(len(a.fields))+" fields", strconv.Itoa(len(b.fields))+" fields",
			fmt.Sprintf("had %d fields by position, has now %d%s", len(a.fields), len(b.fields), c.way))
		return
	}
	for i, f := range a.fields {
		g := b.fields[i]
		at := joinPath(path, f.name)
		switch {
		case g.name == f.name:
		case slices.Contains(g.aliases, f.name):
			c.add(Compatible, at, c.old.text(f.is), c.new.text(g.is), "was renamed to "+g.name+" by an alias")
		default:
			c.add(Incompatible, at, c.old.text(f.is), c.new.text(g.is),
				fmt.Sprintf("stands where %s is now; if it was renamed, say so by the tag `msgpack:%q`", g.name, g.name+",alias:"+f.name))
		}
		c.row(at, f.is, g.is)
	}
}
