package source

// waitingFiles is the partition of a Report that stands for the files that wait to be
// read; no file's partition has the name.
const waitingFiles = notText

// planned tells the health of a plan. s has what was before it.
func (s *Directory[T]) planned(p Plan, reading []dirFile, fresh map[string]candidate) {
	found, waiting := 0, int64(0)
	old := map[string]bool{}
	for _, f := range s.reading {
		old[f.name] = true
	}
	for name, c := range fresh {
		if _, ok := s.fresh[name]; !ok {
			found++
		}
		waiting += c.info.Size
	}
	for _, f := range reading {
		if _, ok := s.fresh[f.name]; !ok && !old[f.name] {
			found++
		}
	}
	s.health.planned(p, func(i int) int64 {
		if i == 0 {
			return p.Ranges[0].Until
		}
		return reading[i-1].size
	}, found, waiting)
}

// Report implements Reporter. Offsets are bytes, but those of the partition "." are
// files that were read. The files that wait for their turn, or to be complete, are the
// partition "/". The counters files_found and files_read tell how many there were since
// Open; those that an earlier run had begun are only read.
func (s *Directory[T]) Report() Report {
	parts, waiting, found, read := s.health.report()
	if waiting > 0 {
		parts = append(parts, PartitionReport{Partition: waitingFiles, End: waiting, Lag: waiting})
	}
	return Report{Partitions: parts, Counters: map[string]int64{"files_found": found, "files_read": read}}
}
