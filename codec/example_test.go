package codec_test

import (
	"fmt"

	"github.com/statemill/statemill/codec"
)

func ExampleFor() {
	type session struct {
		User   string
		Clicks map[string]int
	}
	c, err := codec.For[session]()
	if err != nil {
		panic(err)
	}
	b, err := c.Append(nil, session{"ada", map[string]int{"b": 2, "a": 1}})
	if err != nil {
		panic(err)
	}
	s, err := c.Decode(b)
	fmt.Println(c.ID(), s, err)
	// Output: msgpack {ada map[a:1 b:2]} <nil>
}

func ExampleFor_refused() {
	type session struct {
		User  string
		count int
	}
	_, err := codec.For[session]()
	fmt.Println(err, session{count: 0}.count)
	// Output: codec: codec_test.session: field count: unexported, so it would not be stored; export it, or leave it out with the tag `msgpack:"-"` 0
}

func ExampleKeyFor() {
	type cell struct {
		Sheet string
		Row   int16
	}
	k, err := codec.KeyFor[cell]()
	if err != nil {
		panic(err)
	}
	fmt.Printf("% x\n", k.Append(nil, cell{"ab", -1}))
	fmt.Println(k.Compare(cell{"ab", -1}, cell{"ab", 2}))
	// Output:
	// 61 62 00 01 7f ff
	// -1
}
