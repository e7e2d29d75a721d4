package operation

import (
	fleetv1 "sigs.k8s.io/cluster-api/api/fleet/v1alpha1"
)

// Marks are the steps in the status of an operation.
type Marks interface {
	// Find returns the mark of a step, nil if the step was not begun.
	Find(name string) *fleetv1.OperationStep
	// Add adds the mark of a step.
	Add(mark fleetv1.OperationStep)
	// Current returns the mark of the first step that is not complete, nil if there is none.
	Current() *fleetv1.OperationStep
}

// Steps are the Marks of kinds whose steps are only that.
type Steps []fleetv1.OperationStep

// Find implements Marks.
func (s *Steps) Find(name string) *fleetv1.OperationStep {
	return s.first(func(m *fleetv1.OperationStep) bool { return m.Name == name })
}

// Add implements Marks.
func (s *Steps) Add(mark fleetv1.OperationStep) { *s = append(*s, mark) }

// Current implements Marks.
func (s *Steps) Current() *fleetv1.OperationStep {
	return s.first(func(m *fleetv1.OperationStep) bool { return m.CompletionTime == nil })
}

func (s *Steps) first(is func(*fleetv1.OperationStep) bool) *fleetv1.OperationStep {
	for i := range *s {
		if is(&(*s)[i]) {
			return &(*s)[i]
		}
	}
	return nil
}

// Begun reports whether a step was begun.
func (r *Run) Begun(name string) bool { return r.Marks.Find(name) != nil }

// Completed reports whether a step is complete: it is not taken again.
func (r *Run) Completed(name string) bool {
	m := r.Marks.Find(name)
	return m != nil && m.CompletionTime != nil
}

// Begin returns the mark of a step, which it adds.
func (r *Run) Begin(name string) *fleetv1.OperationStep {
	if m := r.Marks.Find(name); m != nil {
		return m
	}
	r.Marks.Add(fleetv1.OperationStep{Name: name, StartTime: r.now()})
	return r.Marks.Find(name)
}

// Complete marks a step as complete.
func (r *Run) Complete(name, message string) {
	m := r.Begin(name)
	m.CompletionTime, m.Message = r.now(), Brief(message)
	if !Ended(*r.Phase) {
		r.Running("Step " + name + " is complete: " + message)
	}
}
