// Package engine is what the Docker provider needs of a container runtime: Engine, with containers, images, one network, and a
// stream of events. Package docker implements it for Docker and sockets compatible with it, and package enginetest in memory.
//
// Guarantees of every implementation:
//
//   - Errors are of type *Error, with a reason that decides what follows and a message that says what to do.
//   - Every request has a time limit, or ends with its context if it takes as long as the caller wants (Exec, EnsureImage,
//     SaveImage, Events). Output is never read without a limit.
//   - Arguments never pass through a shell. Names of containers, images and labels are those of the caller.
//   - Nothing is retried: the caller's work queue does that.
//
// Which object a container belongs to is decided by package identity, from the container's labels.
//
// What does not belong here: what containers are for.
package engine
