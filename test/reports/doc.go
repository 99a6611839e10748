// Package reports holds real faults that people met in other stream engines, as
// tests of whole jobs. The number of the report stands at each test. Many of
// those about checkpoints, and those about Kafka and sinks, stand with those parts.
// It has tests only.
package reports
