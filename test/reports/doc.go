// Package reports holds real faults that people met in other stream engines, as
// tests of whole jobs. The number of the report stands at each test. Reports
// about checkpoints, Kafka and sinks come with those parts. It has tests only.
package reports
