package script

import (
	"sync"
)

// Set holds the Scripts of all runs that are not finished: the active one, whose faults are injected, and those that only
// record. It is safe for concurrent use.
type Set struct {
	ongoing  *Ongoing
	snapshot []func(on Kind)

	mu      sync.Mutex
	scripts map[string]*Script
	active  *Script
}

// Activate adds a Script and makes it the active one.
func (s *Set) Activate(script *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scripts == nil {
		s.scripts = map[string]*Script{}
	}
	s.own().Clear()
	s.active, s.scripts[script.namespace] = script, script
}

// Remove removes a Script.
func (s *Set) Remove(script *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.scripts, script.namespace)
	if s.active == script {
		s.active = nil
	}
}

// Find returns the Script for requests in a namespace, or nil. Requests without a namespace are for the active Script.
func (s *Set) Find(namespace string) *Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	if namespace == "" {
		return s.active
	}
	return s.scripts[namespace]
}

// Ongoing returns the lasting faults.
func (s *Set) Ongoing() *Ongoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own()
}

func (s *Set) own() *Ongoing {
	if s.ongoing == nil {
		s.ongoing = newOngoing()
	}
	return s.ongoing
}

// OnTravel registers a function that saves the current lists. It is called before a fault that returns them later begins.
func (s *Set) OnTravel(save func(on Kind)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = append(s.snapshot, save)
}

// Begin starts a lasting fault of the active Script. Without one it does nothing: the run may have ended since the fault was
// selected, and the fault must not affect the next run.
func (s *Set) Begin(f Fault) {
	s.mu.Lock()
	if s.active == nil {
		s.mu.Unlock()
		return
	}
	ongoing, snapshot, namespace := s.own(), s.snapshot, s.active.namespace
	s.mu.Unlock()
	if f.Do == Travel || f.Do == TravelRestart {
		for _, save := range snapshot {
			save(f.On)
		}
	}
	ongoing.Begin(f, namespace)
}

// Run returns the namespace of the active Script, or "".
func (s *Set) Run() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == nil {
		return ""
	}
	return s.active.namespace
}
