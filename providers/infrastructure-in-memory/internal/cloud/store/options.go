package store

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// WriteOptions modify a write.
type WriteOptions struct {
	// DryRun does everything but store the result.
	DryRun bool
}

// DeleteOptions modify a deletion.
type DeleteOptions struct {
	// UID and ResourceVersion are preconditions, if set.
	UID, ResourceVersion string
	// Propagation is the propagation policy. Default: background.
	Propagation metav1.DeletionPropagation
	// GracePeriod is for Pods on a dead machine: they stay terminating until the machine is back or they are deleted with
	// a grace period of zero. Other objects are deleted immediately. Nil means the Pod's own period.
	GracePeriod *time.Duration
	// DryRun does everything but delete.
	DryRun bool
}
