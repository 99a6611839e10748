package kafka

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/statemill/statemill/source"
)

// resumed is what a run begins with. gone are partitions of the last plan that are not
// read any more: their part of the plan may have to be read again, if the epoch was not
// committed. absent are those that would be read if they were there. again are topics that
// were made again.
type resumed struct {
	parts, gone, absent []*part
	again               map[string]bool
}

// resume puts the partitions where the last plan ended.
func (s *kafkaSource) resume(f found, last *source.Plan) (at resumed, err error) {
	at.parts, at.again = f.parts, map[string]bool{}
	if last == nil {
		return at, nil
	}
	until, topics := map[string]source.Range{}, map[string]bool{}
	for _, r := range last.Ranges {
		until[r.Partition] = r
		topics[partitionOf(r.Partition).Topic] = true
	}
	absent := map[string][]*part{}
	for _, p := range f.parts {
		r, ok := until[p.name]
		switch {
		case ok && p.is(r.Epoch):
			p.at(r)
		case ok && !s.cfg.onLoss:
			return at, &Error{Doing: "resume", Err: madeAgain(p.Topic, r.Epoch, p.id, last.Ranges), final: true}
		case ok:
			p.late, at.again[p.Topic] = true, true
		default:
			// Of a topic that was read before: it is new. Of one that may have appeared
			// while nobody looked: the same.
			p.late = topics[p.Topic] || s.cfg.follows()
		}
		delete(until, p.name)
	}
	for _, p := range f.parts {
		p.anew = at.again[p.Topic]
		if offset, named := s.named(p); named && !p.placed && topics[p.Topic] {
			s.notice("%s", p.startsAt(offset))
		}
	}
	for _, r := range last.Ranges {
		if _, ok := until[r.Partition]; !ok {
			continue
		}
		p := newPart(partitionOf(r.Partition), r.Epoch)
		p.at(r)
		switch {
		case !s.cfg.covers(p.TopicPartition), at.again[p.Topic]:
			at.gone = append(at.gone, p)
		case !s.cfg.onLoss:
			return at, &Error{Doing: "resume", Err: noTopic(p.Topic, last.Ranges), final: true}
		default:
			at.absent = append(at.absent, p)
			absent[p.Topic] = append(absent[p.Topic], p)
		}
	}
	for _, t := range sortedKeys(at.again) {
		s.count("lost_topics", 1)
		s.notice("topic %q was deleted and made again: what was not read of it is lost (%s)", t, ends(t, last.Ranges))
	}
	for _, t := range sortedKeys(absent) {
		s.away(t, absent[t])
	}
	return at, nil
}

// at puts a partition where a range of an earlier run ended.
func (p *part) at(r source.Range) {
	p.next, p.placed, p.done = r.Until, true, r.From
	p.epoch = epochOf(r.Mark)
	p.doubtful = p.epoch >= 0
}

// partitionOf takes a partition's name in plans apart.
func partitionOf(name string) TopicPartition {
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.ParseInt(name[i+1:], 10, 32)
	if i < 0 || err != nil {
		return TopicPartition{Topic: name, Partition: -1}
	}
	return TopicPartition{name[:i], int32(n)}
}

// ends says how far a topic was read.
func ends(topic string, ranges []source.Range) string {
	var out []string
	for _, r := range ranges {
		if tp := partitionOf(r.Partition); tp.Topic == topic {
			out = append(out, fmt.Sprintf("partition %d up to offset %d", tp.Partition, r.Until))
		}
	}
	if len(out) > 8 {
		out = append(out[:8], fmt.Sprintf("and %d more", len(out)-8))
	}
	return strings.Join(out, ", ")
}

func sortedKeys[V any](m map[string]V) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// is says that the topic is the one with that id, as far as that can be known.
func (p *part) is(id string) bool { return id == "" || p.id == "" || id == p.id }
