package tools

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/statemill/statemill/partitioner"
)

// murmurKeys are of every length modulo 4 (murmur2 takes four bytes at a time), empty,
// and with bytes above 127 (Java's bytes are signed).
func murmurKeys() []string {
	keys := []string{"", "ä", "日本語", "ключ", "🙂🙃", "ÿÿÿ", "a b", strings.Repeat("long", 100)}
	for i := range 250 {
		keys = append(keys, fmt.Sprint(i), fmt.Sprintf("%s-é%d", strings.Repeat("k", i%9), i))
	}
	return keys
}

// TestMurmur2AgreesWithTheJavaClient reads back with the console consumer where
// the console producer put each key.
func TestMurmur2AgreesWithTheJavaClient(t *testing.T) {
	const partitions = 7
	k := onKafka(t)
	topic := k.topic(partitions)
	var lines []string
	keys := murmurKeys()
	for i, key := range keys {
		lines = append(lines, fmt.Sprintf("%s\t%d", key, i))
	}
	k.produce(topic, "none", lines)

	p := partitioner.Murmur2(partitions)
	require.NoError(t, partitioner.Check(p))
	var used [partitions]int
	got := k.run("", "console-consumer", "--topic", topic, "--from-beginning",
		"--max-messages", fmt.Sprint(len(keys)), "--timeout-ms", "30000",
		"--formatter-property", "print.partition=true", "--formatter-property", "print.key=true")
	records := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	require.Len(t, records, len(keys), "records read back")
	for _, r := range records {
		var where, i int
		f := strings.Split(r, "\t") // Partition:2, key, value
		require.Len(t, f, 3, "%q", r)
		_, err := fmt.Sscanf(f[0]+" "+f[2], "Partition:%d %d", &where, &i)
		require.NoError(t, err, "%q", r)
		require.Equal(t, keys[i], f[1], "the key came back as it was")
		assert.Equal(t, where, p.Partition(keys[i]), "partition of key %q", keys[i])
		used[where]++
	}
	assert.NotContains(t, used, 0, "every partition must have keys: %v", used)
}
