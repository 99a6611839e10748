package kafka

import (
	"fmt"
	"slices"
	"strings"

	"github.com/statemill/statemill/internal/sabotage"
	"github.com/statemill/statemill/sink"
	"github.com/statemill/statemill/source"
)

var (
	_ sink.Exclusive   = (*Sink)(nil)
	_ source.Exclusive = (*kafkaSource)(nil)
)

// Clash implements sink.Exclusive: two sinks on one cluster would write an epoch in two
// transactions, of which a reader may see one alone.
func (s *Sink) Clash(other sink.Unit) error {
	o, ok := other.(*Sink)
	if !ok || o == nil || o == s || sabotage.On("two-sinks-on-one-cluster") {
		return nil
	}
	s.mu.Lock()
	one, brokers := s.cluster, s.cfg.brokers
	s.mu.Unlock()
	o.mu.Lock()
	two, others := o.cluster, o.cfg.brokers
	o.mu.Unlock()
	how := sameCluster(one, two, brokers, others)
	if how == "" {
		return nil
	}
	return &permanent{fmt.Errorf("%v and %v write to one cluster (%s): each has a transaction of its own, so that readers could see half of an epoch. Make one kafka.NewSink and give it to all outputs: kafka.To(sink, \"topic\", …), sink.Topic(\"topic\") and kafka.DeadLetters(sink, \"topic\") are doors of one",
		s, o, how)}
}

// Clash implements source.Exclusive: two sources that mirror the same partitions to one
// group would write over each other's offsets. With different partitions they may: Kafka's
// tool shows a group's offsets partition by partition.
func (s *kafkaSource) Clash(other any) error {
	if e, ok := other.(ending); ok {
		other = e.kafkaSource
	}
	o, ok := other.(*kafkaSource)
	if !ok || o == s || s.cfg.group == "" || s.cfg.group != o.cfg.group || sabotage.On("two-sources-in-one-group") {
		return nil
	}
	one, have := s.reads()
	two, others := o.reads()
	how := sameCluster(one, two, s.cfg.brokers, o.cfg.brokers)
	if how == "" {
		return nil
	}
	both := s.cfg.overlap(&o.cfg.subscription)
	if shared := slices.DeleteFunc(sortedKeys(have), func(name string) bool { return !others[name] }); both == "" && len(shared) > 0 {
		both = "both read " + shared[0]
	}
	if both == "" {
		return nil
	}
	return &permanent{fmt.Errorf("%v and %v have one Group, %q, on one cluster (%s), and %s: the offsets of one would be written over those of the other. Give each source a group of its own",
		s, o, s.cfg.group, how, both)}
}

// reads is which partitions an open source reads.
func (s *kafkaSource) reads() (*cluster, map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.open {
		return nil, nil
	}
	all := map[string]bool{}
	for _, p := range s.parts {
		all[p.name] = true
	}
	return s.cluster, all
}

// overlap says what both subscriptions are sure to read, as far as their options tell.
func (u *subscription) overlap(v *subscription) string {
	for _, tp := range u.assigned {
		if v.covers(tp) {
			return fmt.Sprintf("both read %v", tp)
		}
	}
	for _, tp := range v.assigned {
		if u.covers(tp) {
			return fmt.Sprintf("both read %v", tp)
		}
	}
	if len(u.assigned) > 0 || len(v.assigned) > 0 {
		return ""
	}
	for _, t := range append(slices.Clone(u.topics), v.topics...) {
		if tp := (TopicPartition{Topic: t}); u.covers(tp) && v.covers(tp) {
			return fmt.Sprintf("both read topic %q", t)
		}
	}
	if u.pattern != nil && v.pattern != nil && u.pattern.String() == v.pattern.String() {
		return "both read " + u.String()
	}
	return ""
}

// sameCluster says how two are known to be one cluster, "" if they are not: they have
// given the same id, or a broker is named for both.
func sameCluster(one, two *cluster, brokers, others []string) string {
	if a, b := one.identity(), two.identity(); a != "" && a == b {
		return "its id is " + a
	}
	for _, a := range brokers {
		if slices.ContainsFunc(others, func(b string) bool { return sameHost(a, b) }) {
			return "both name broker " + a
		}
	}
	return ""
}

// sameHost compares addresses as the name service does.
func sameHost(a, b string) bool {
	plain := func(s string) string {
		host, port, _ := strings.Cut(s, ":")
		return strings.TrimSuffix(host, ".") + ":" + port
	}
	return strings.EqualFold(plain(a), plain(b))
}

// identity is the cluster's id, "" if it is not known.
func (k *cluster) identity() string {
	if k == nil {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.id
}
