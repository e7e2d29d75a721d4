package script

import (
	"sync"
	"time"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

// Record is a write that a manager sent.
type Record struct {
	request.Request
	// Nth is its number among those of its kind.
	Nth int
	// Fault that happened to it, if any.
	Fault *Fault
	// Code is the HTTP status of the API server's answer, 0 if it was not forwarded.
	Code int
	// At is when it came.
	At time.Time
}

// Script numbers the requests of one run and finds the faults that are due. It is safe for concurrent use.
type Script struct {
	home   string
	faults []Fault

	mu      sync.Mutex
	armed   bool
	counts  map[request.Kind]int
	hits    []int // by fault: how many requests it selected so far
	records []*Record
}

// New is a Script of the run in a namespace of the management cluster.
func New(home string, faults ...Fault) *Script {
	return &Script{home: home, faults: faults, counts: map[request.Kind]int{}, hits: make([]int, len(faults))}
}

// Arm begins to count requests: those of the preparations do not count.
func (s *Script) Arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.armed = true
}

// Disarm lets no more faults happen. Requests are still recorded.
func (s *Script) Disarm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults, s.hits = nil, nil
}

// Next numbers a request and returns the fault that is due, or nil. The record, which is nil for requests that are not
// of this run or no writes, is to be completed by Answered.
func (s *Script) Next(r request.Request) (*Record, *Fault) {
	if r.Home != s.home {
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

// Answered notes the API server's answer to a recorded request.
func (s *Script) Answered(r *Record, code int) {
	if r == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Code = code
}

// Records are the writes of the run so far.
func (s *Script) Records() []Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Record, 0, len(s.records))
	for _, r := range s.records {
		out = append(out, *r)
	}
	return out
}

// Happened reports how many of the faults have happened.
func (s *Script) Happened() int {
	n := 0
	for _, r := range s.Records() {
		if r.Fault != nil {
			n++
		}
	}
	return n
}
