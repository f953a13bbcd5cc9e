package kernel

// Note adds what a process has used of a resource that is counted only afterwards, such as
// money. It may pass the limit; the process is then told and ended like at any other limit.
func (t *Table) Note(pid PID, r Resource, n int64) bool {
	return t.use(pid, func(own *Use) { *own.at(r) += n })
}

// LongLived returns s for a process that is to run on: without a limit of its processor time
// in total, unless it has limits of its own. Any total would end a service some day.
func (s Spec) LongLived() Spec {
	if s.Capabilities == nil {
		c := DefaultCapabilities()
		c.Limits.CPUTimeMs = 0
		s.Capabilities = &c
	}
	return s
}
