package store

// Metrics are numbers about the database for the operator.
type Metrics struct {
	DiskBytes     uint64 // tables, logs and the rest
	FreeBytes     uint64 // of the file system; 0 when it can not tell
	WALBytes      uint64 // live write-ahead log
	MemTableBytes uint64
	CacheBytes    int64
	CacheHits     int64
	CacheMisses   int64
	ReadAmp       int // tables that one read may have to look at
	Flushes       int64
	Compactions   int64
	Syncs         uint64 // fsyncs of the write-ahead log
}

// Metrics returns the numbers as of now; zero after Close.
func (s *Store) Metrics() Metrics {
	if s.closed.Load() {
		return Metrics{}
	}
	m := db(s).Metrics()
	free, _ := s.space.freeBytes()
	return Metrics{
		DiskBytes:     m.DiskSpaceUsage(),
		FreeBytes:     free,
		WALBytes:      m.WAL.Size,
		MemTableBytes: m.MemTable.Size,
		CacheBytes:    m.BlockCache.Size,
		CacheHits:     m.BlockCache.Hits,
		CacheMisses:   m.BlockCache.Misses,
		ReadAmp:       m.ReadAmp(),
		Flushes:       m.Flush.Count,
		Compactions:   m.Compact.Count,
		Syncs:         s.Syncs(),
	}
}
