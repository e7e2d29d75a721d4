// Package ignition renders bootstrap data as an Ignition 2.3 document: files, users, disks, mounts, and the systemd unit that
// runs kubeadm. The user's Container Linux Config is merged into it.
//
// It is a pure function of its input: no clock, no randomness, no API requests. The document is built from Ignition's own
// types, not from text, so that no value can change the structure. Values that end up in files with a syntax of their own
// (units, scripts, sudoers, sshd_config, ntp.conf) are checked or quoted. The result is validated by Ignition's library, since a
// machine that cannot parse its document does not start, and does not report why.
//
// The configuration of kubeadm, and which keys a machine gets, are up to the caller.
package ignition
