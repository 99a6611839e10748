package wire

import (
	"fmt"
	"io"

	kafkago "github.com/segmentio/kafka-go"
)

// Error is a broker's error code.
type Error int16

// The codes that a caller must tell apart.
const (
	OffsetOutOfRange       Error = 1
	CorruptMessage         Error = 2
	UnknownTopic           Error = 3
	LeaderNotAvailable     Error = 5
	NotLeader              Error = 6
	MessageTooLarge        Error = 10
	CoordinatorLoading     Error = 14
	CoordinatorUnavailable Error = 15
	NotCoordinator         Error = 16
	BatchTooLarge          Error = 18
	IllegalGeneration      Error = 22
	UnknownMember          Error = 25
	OutOfOrderSequence     Error = 45
	DuplicateSequence      Error = 46
	InvalidProducerEpoch   Error = 47
	InvalidTxnState        Error = 48
	InvalidProducerMapping Error = 49
	InvalidTxnTimeout      Error = 50
	ConcurrentTransactions Error = 51
	UnknownProducerID      Error = 59
	GroupNotFound          Error = 69
	OffsetNotAvailable     Error = 78
	UnstableOffset         Error = 88
	ProducerFenced         Error = 90
	UnknownTopicID         Error = 100
	TransactionAbortable   Error = 120
)

func (e Error) Error() string {
	if e == -1 {
		return "[-1] unknown server error: see the broker's log"
	}
	switch e { // kafka-go has no words for these
	case OffsetNotAvailable:
		return "[78] Offset Not Available: the leader does not know yet how far its log is committed"
	case TransactionAbortable:
		return "[120] Transaction Abortable: the transaction has to be aborted before the producer can go on"
	}
	if kafkago.Error(e).Title() == "" {
		return fmt.Sprintf("[%d] see this number in Kafka's list of error codes", int16(e))
	}
	return kafkago.Error(e).Error()
}

// Unwrap lets errors.Is find kafka-go's value of the same code.
func (e Error) Unwrap() error { return kafkago.Error(e) }

// Retriable says that the same request may succeed later, perhaps at another
// broker.
func (e Error) Retriable() bool {
	switch e {
	case 3, 5, 6, 7, 8, 9, 13, 14, 15, 16, 19, 20, 41, 56, 72, 74, 75, 78, 89, 100, 103:
		return true
	}
	return e == -1
}

// requestName names a request as Kafka's documents do.
func requestName(key int16) string {
	switch key {
	case keyProduce:
		return "Produce"
	case keyFetch:
		return "Fetch"
	case keyListOffsets:
		return "ListOffsets"
	case keyMetadata:
		return "Metadata"
	case keyOffsetCommit:
		return "OffsetCommit"
	case keyOffsetFetch:
		return "OffsetFetch"
	case keyFindCoordinator:
		return "FindCoordinator"
	case keyListGroups:
		return "ListGroups"
	case keyAPIVersions:
		return "ApiVersions"
	case keyInitProducerID:
		return "InitProducerId"
	case keyEpochEnd:
		return "OffsetForLeaderEpoch"
	case keyAddPartitions:
		return "AddPartitionsToTxn"
	case keyAddOffsets:
		return "AddOffsetsToTxn"
	case keyEndTxn:
		return "EndTxn"
	case keyTxnOffsetCommit:
		return "TxnOffsetCommit"
	}
	return fmt.Sprintf("request %d", key)
}

// AlienError is a server that does not speak Kafka's protocol.
type AlienError struct {
	Addr string
	Got  string // what it did
	// Closed: it has only closed the connection, before its first answer or in the head
	// of it, which a broker may do that goes down, and what stands before one that is
	// away.
	Closed bool
}

// Permanent says that trying again does not help.
func (e *AlienError) Permanent() bool { return !e.Closed }

// Unwrap gives io.EOF where the connection was only closed.
func (e *AlienError) Unwrap() error {
	if e.Closed {
		return io.EOF
	}
	return nil
}

func (e *AlienError) Error() string {
	or := ""
	if e.Closed {
		or = ", or goes down"
	}
	return fmt.Sprintf("the server at %s does not speak the Kafka protocol%s: %s: check the address, the port, and whether the listener wants TLS", e.Addr, or, e.Got)
}
