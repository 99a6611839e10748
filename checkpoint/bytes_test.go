package checkpoint

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocumentsByName: tools read and write the documents of a root by their names.
func TestDocumentsByName(t *testing.T) {
	for name, doc := range map[string]any{
		OwnerName(3):     &Owner{Term: 3, Run: "r"},
		MetadataName(2):  &Metadata{Seq: 2, Root: "id", Interval: 1},
		PlanName(9):      &Plan{Epoch: 9, Kind: KindBatch, Term: 1},
		CommitName(9):    &Commit{Epoch: 9, Kind: KindBatch, Term: 1, Metadata: 1},
		CountsName(9, 1): &Counts{Epoch: 9, Term: 1, Run: "r", Counters: map[string]int64{"a": 1}},
	} {
		b, err := EncodeDocument(doc)
		require.NoError(t, err)
		back, err := DecodeDocument(name, b)
		require.NoError(t, err)
		require.Equal(t, doc, back)
		_, err = DecodeDocument(name+"0", b) // it was copied or renamed
		require.ErrorIs(t, err, ErrCorrupt)
		b[3] ^= 1
		_, err = DecodeDocument(name, b)
		require.ErrorIs(t, err, ErrCorrupt)
	}
	for _, name := range []string{"lock", "owner/x", "owner/01", "else/1", "counts/1", "counts/1.01", "state/1/0/1.1.delta", ""} {
		doc, err := DecodeDocument(name, nil)
		require.NoError(t, err)
		require.Nil(t, doc)
	}
	_, err := EncodeDocument(Owner{})
	require.ErrorContains(t, err, "is no document")
}
