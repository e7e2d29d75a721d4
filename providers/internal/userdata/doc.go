// Package userdata reads bootstrap data as cloud-init or Ignition do at the first boot of a machine.
//
// Read interprets cloud-config (write_files and runcmd; all other modules are ignored) and Ignition 2.x (files, directories, links,
// users, groups and units). The result is a list of files and commands, for machines that have neither program: containers, and
// simulated machines. Reading is pure, and limited in size and number, because tenants write bootstrap data.
//
// What does not belong here: what kubeadm does with its files, and running the commands.
package userdata
