package script

import "sync"

// Stage has the Scripts of all runs that are not over: the one that is being played, and those that only record. It is
// safe for concurrent use.
type Stage struct {
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
