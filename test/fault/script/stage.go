package script

import (
	"sync"

	"sigs.k8s.io/cluster-api/test/fault/request"
)

// Stage has the Scripts of all runs that are not over: the one that is being played, and those that only record. It is
// safe for concurrent use.
type Stage struct {
	views    *Views
	snapshot []func(on request.Kind)

	mu      sync.Mutex
	scripts map[string]*Script
	active  *Script
}

// Play makes a Script the one that is being played.
func (s *Stage) Play(script *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.scripts == nil {
		s.scripts = map[string]*Script{}
	}
	s.own().Clear()
	s.active, s.scripts[script.home] = script, script
}

// Leave ends a Script.
func (s *Stage) Leave(script *Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.scripts, script.home)
	if s.active == script {
		s.active = nil
	}
}

// Find returns the Script for requests about a namespace, or nil. What is about no one namespace is for the Script that is
// being played.
func (s *Stage) Find(home string) *Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	if home == "" {
		return s.active
	}
	return s.scripts[home]
}

// Views are the faults that last.
func (s *Stage) Views() *Views {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own()
}

func (s *Stage) own() *Views {
	if s.views == nil {
		s.views = newViews()
	}
	return s.views
}

// OnTravel registers what remembers how lists are now, before a fault that shows them later begins.
func (s *Stage) OnTravel(remember func(on request.Kind)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.snapshot = append(s.snapshot, remember)
}

// Begin lets a fault that lasts begin, in the run that is being played.
func (s *Stage) Begin(f Fault) {
	s.mu.Lock()
	views, snapshot, home := s.own(), s.snapshot, s.active.home
	s.mu.Unlock()
	if f.Do == Travel || f.Do == TravelRestart {
		for _, remember := range snapshot {
			remember(f.On)
		}
	}
	views.Begin(f, home)
}

// Home is the namespace of the run that is being played, or empty.
func (s *Stage) Home() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active == nil {
		return ""
	}
	return s.active.home
}
