// Package policy reconciles EtcdBackupPolicies: it creates EtcdBackups of the selected Clusters when they are due, and deletes
// those that are
// no longer to be kept.
//
// The steps, in order, and what each guarantees:
//
//	plan    the spec is valid, and what is due now is known, by package plan
//	create  an EtcdBackup exists for each backup that is due; its name follows from Cluster and due time, so that none is created twice
//	expire  backups that are no longer kept are deleted, while the one that replaces them exists in the API server
//
// The policy remembers nothing: everything follows from the Clusters and EtcdBackups. Deleting a policy deletes no backup.
//
// Making a backup is the work of package backup.
package policy
