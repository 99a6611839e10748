package main

// table names every break in the source and the test that must catch it; the oracle alone does not count, for it cannot
// see a missing undo.
var table = []Break{
	{Name: "footer-not-checked", Package: "checkpoint/statefile", Test: "TestCutAtBlockEdge"},
	{Name: "hash-not-checked", Package: "checkpoint/statefile", Test: "TestOtherLineIsRefused"},
	{Name: "tombstone-dropped", Package: "checkpoint/statefile", Test: "TestTombstones"},

	{Name: "clone-key", Package: "codec", Test: "TestKeyCloneOwnsItsStrings"},
	{Name: "key-order", Package: "codec", Test: "TestKeyLaws"},
	{Name: "map-order", Package: "codec", Test: "TestMapsAreSorted"},
	{Name: "migrate-direct", Package: "codec", Test: "TestMigrationsChain"},
	{Name: "removed-field", Package: "codec", Test: "TestCompare"},

	{Name: "clock-back-not-held", Package: "internal/core", Test: "TestGolden/clock.txt"},
	{Name: "epochs-overlap", Package: "internal/core", Test: "TestProperties"},
	{Name: "skip-queue-limit", Package: "internal/core", Test: "TestGolden/queue.txt"},
	{Name: "stop-starts-next", Package: "internal/core", Test: "TestGolden/stop.txt"},

	{Name: "abort-only-failed", Package: "dstream", Test: "TestFailedEpochLeavesNothing"},
	{Name: "consumers-not-kept", Package: "dstream", Test: "TestEachFunctionRunsOnce"},
	{Name: "duplicate-passes", Package: "dstream", Test: "TestDuplicatesAndGaps"},
	{Name: "output-recompute", Package: "dstream", Test: "TestRetriedOutputComputesNothing"},
	{Name: "position-goes-back", Package: "dstream", Test: "TestDuplicatesAndGaps"},
	{Name: "remember-forgotten", Package: "dstream", Test: "TestRememberedBatchesPinStateOnlyForReaders/true"},
	{Name: "seal-before-all", Package: "dstream", Test: "TestFailedOutputTakesStateBack"},

	{Name: "bytes-not-capped", Package: "kafka", Test: "TestBytesAreCappedFromTheFirstBatchOn"},
	{Name: "wait-for-last-record", Package: "kafka", Test: "TestEndIsAPosition"},

	{Name: "aborted-pass", Package: "kafka/internal/batch", Test: "TestTransactions"},
	{Name: "markers-pass", Package: "kafka/internal/batch", Test: "TestTransactions"},
	{Name: "no-crc", Package: "kafka/internal/batch", Test: "TestDamage/checksum"},

	{Name: "receiver-forgets-early", Package: "source/receiver", Test: "TestSuite"},
	{Name: "receiver-no-sync", Package: "source/receiver", Test: "TestEveryCallFails"},

	{Name: "guard-leaks-rows", Package: "rdd", Test: "TestGuardedModeAtEveryEdge"},
	{Name: "kept-not-kept", Package: "rdd", Test: "TestKeptIsComputedOnce"},
	{Name: "random-group-order", Package: "rdd", Test: "TestOrderOfReduceByKey"},
	{Name: "released-readable", Package: "rdd", Test: "TestReleasedKeptRows"},
	{Name: "shuffle-join-order", Package: "rdd", Test: "TestOrderOfShuffle"},

	{Name: "sink-attempts-share-names", Package: "sink", Test: "TestFilesAttemptsHaveNamesOfTheirOwn"},
	{Name: "sink-data-unchecked", Package: "sink", Test: "TestEveryByteDamaged"},
	{Name: "sink-digest-without-output", Package: "sink", Test: "TestDigest"},
	{Name: "sink-dry-run-writes", Package: "sink", Test: "TestFilesSuite/objects/DryRunTouchesNothing"},
	{Name: "sink-empty-epoch-skipped", Package: "sink", Test: "TestFilesSuite/objects/EmptyEpochMovesMemory"},
	{Name: "sink-entry-chain-unchecked", Package: "sink", Test: "TestFilesOtherLog"},
	{Name: "sink-fence-unchecked", Package: "sink", Test: "TestFilesSuite/objects/LowerTermIsRefused"},
	{Name: "sink-manifest-replaced", Package: "sink", Test: "TestFilesSuite/objects/FenceShutsOutOlder"},
	{Name: "sink-memory-before-fence", Package: "sink", Test: "TestFilesSuite/objects/TwoRunsInterleaved"},
	{Name: "sink-sum-without-bounds", Package: "sink", Test: "TestSumTellsOutputsApart"},
	{Name: "sink-sum-without-rows", Package: "sink", Test: "TestSumTellsOutputsApart"},

	{Name: "buffer-freed-early", Package: "source", Test: "TestLinesBuffer"},
	{Name: "file-read-twice", Package: "source", Test: "TestDirectoryOnlyCompleteFilesOnce"},
	{Name: "line-read-twice", Package: "source", Test: "TestFilesSuite"},
	{Name: "share-not-rotated", Package: "source", Test: "TestReport36Share"},

	{Name: "abort-keeps-counters", Package: "statemap", Test: "TestAbortRestoresEverything"},
	{Name: "detach-loses-undo", Package: "statemap", Test: "TestPinnedVersions"},
	{Name: "lock-dropped", Package: "statemap", Test: "TestUserCodeRunsWithoutLock"},
	{Name: "no-undo", Package: "statemap", Test: "TestCopy"},
	{Name: "slot-reused-early", Package: "statemap", Test: "TestCopy"},
	{Name: "tombstone-falls-through", Package: "statemap", Test: "TestExhaustive"},
	{Name: "undo-wrong-order", Package: "statemap", Test: "TestAbortRestoresEverything"},

	{Name: "expiry-order", Package: "staterdd", Test: "TestOutputOrder"},
	{Name: "insert-before-update", Package: "staterdd", Test: "TestReadersInsertNothing"},
	{Name: "keep-after-timeout", Package: "staterdd", Test: "TestUpdateRule/RU11"},
	{Name: "no-private-copy", Package: "staterdd", Test: "TestMapsChangedInPlace"},
	{Name: "no-touch", Package: "staterdd", Test: "TestUpdateRule/RU12"},
	{Name: "timeout-before-data", Package: "staterdd", Test: "TestDataBeforeTimeout"},
	{Name: "timeout-le", Package: "staterdd", Test: "TestTimeoutsOfAQuietStream"},

	{Name: "bucket-too-late", Package: "timeout", Test: "TestModel/idle"},
	{Name: "no-earlier-hint", Package: "timeout", Test: "TestDeadlineEarlierThanItsHint"},
	{Name: "pass-mutates-early", Package: "timeout", Test: "TestPassChangesNothingBeforeCommit"},
	{Name: "watermark-goes-back", Package: "timeout", Test: "TestWatermarkProperties"},

	{Name: "create-replaces", Package: "vfs", Test: "TestZombieAtEveryCall"},
	{Name: "no-fsync-file", Package: "vfs", Test: "TestMemCrash/CreateExclusiveIsDurable"},
	{Name: "no-fsync-folder", Package: "vfs", Test: "TestMemCrash/TakenIsDurable"},
}
