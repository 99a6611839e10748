package statefile

import (
	"fmt"
	"io"
)

// Verify reads a whole file and checks all of it but the encodings of keys and
// states, whose types it does not know. Errors as Reader.Next and Block.Decode.
func Verify(r io.Reader, path string, want *Want) (Info, Summary, error) {
	rd, err := NewReader(r, path, want)
	if err != nil {
		return Info{}, Summary{}, err
	}
	var f Frame
	var b Block
	tombs := int64(0)
	for {
		err := rd.Next(&f)
		if err == io.EOF {
			break
		}
		if err == nil {
			err = b.Decode(&f)
		}
		if err != nil {
			return rd.Info(), Summary{}, err
		}
		tombs += int64(b.tombs)
	}
	sum := rd.Summary()
	if tombs != sum.Tombstones {
		return rd.Info(), Summary{}, rd.at.corrupt(sum.Size, fmt.Sprintf("its footer counts %d tombstones of %d", sum.Tombstones, tombs), nil)
	}
	return rd.Info(), sum, nil
}
