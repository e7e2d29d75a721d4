// Package bootstrap runs bootstrap data in containers, in place of cloud-init or Ignition.
//
// Read interprets the data (see package userdata). The result is a Plan of files and commands, in which kubeadm is adapted to
// containers (see kubeadm.go).
//
// Run runs a plan in a container, as a numbered attempt:
//
//   - One request starts it, and waits for its end. The plan is a script, which is passed with its checksum: an interrupted
//     request runs nothing.
//   - A running attempt holds a lock (flock) in the container, which ends with its processes. So an attempt is never run twice,
//     at once or one after the other: who asks for an attempt that runs waits for it, and who asks for one that has ended gets
//     its result. Any process may ask, so nothing is lost if one is killed.
//   - The attempt has its time limit in the container, and continues without the process that started it.
//   - It has succeeded once the sentinel file exists. A container that was restarted in an attempt has a failed attempt.
//   - The output is in LogPath in the container.
//   - An attempt after a failed one runs kubeadm reset first. That never happens once the sentinel file exists.
//
// What does not belong here: when to run or to retry, and what conditions report.
package bootstrap
