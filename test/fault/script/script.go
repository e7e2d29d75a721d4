package script

import (
	"sync"
	"time"
)

// Record is a write that a manager sent.
type Record struct {
	Request
	// Nth is its number among the writes of its kind, counted from 1.
	Nth int
	// Fault was injected, if not nil.
	Fault *Fault
	// Code is the HTTP status of the API server's response, 0 if the request was not forwarded.
	Code int
	// At is when it was received.
	At time.Time
}

// Script numbers the requests of one run and finds the faults that are due. It is safe for concurrent use.
type Script struct {
	namespace string
	faults    []Fault

	mu      sync.Mutex
	armed   bool
	counts  map[Kind]int
	hits    []int // requests that each fault has selected
	records []*Record
}

// New returns the Script of the run in a namespace of the management cluster.
func New(namespace string, faults ...Fault) *Script {
	return &Script{namespace: namespace, faults: faults, counts: map[Kind]int{}, hits: make([]int, len(faults))}
}

// Arm starts counting requests: those of the preparation do not count.
func (s *Script) Arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

// Disarm drops the faults that were not injected. Requests are still recorded.
func (s *Script) Disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.hits = nil, nil
}

// Next numbers a request and returns the fault that is due, or nil. The record is nil for reads and requests of other runs;
// otherwise Answered completes it.
func (s *Script) Next(r Request) (*Record, *Fault) {
	if r.Run != s.namespace {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.armed {
		return nil, nil
	}
	kind := r.Kind()
	s.counts[kind]++
	var due *Fault
	for i := range s.faults {
		if !s.faults[i].When.Selects(kind) {
			continue
		}
		if s.hits[i]++; s.hits[i] == s.faults[i].Nth && due == nil {
			f := s.faults[i]
			due = &f
		}
	}
	if !r.Write() {
		return nil, due
	}
	record := &Record{Request: r, Nth: s.counts[kind], Fault: due, At: time.Now()}
	s.records = append(s.records, record)
	return record, due
}

// Answered adds the status of the API server's response to a record.
func (s *Script) Answered(r *Record, code int) {
	if r == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Code = code
}

// Records returns the writes of the run so far.
func (s *Script) Records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Record, 0, len(s.records))
	for _, r := range s.records {
		out = append(out, *r)
	}
	return out
}

// Injected returns the number of faults that were injected.
func (s *Script) Injected() int {
	n := 0
	for _, r := range s.Records() {
		if r.Fault != nil {
			n++
		}
	}
	return n
}
