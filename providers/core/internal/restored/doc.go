// Package restored resumes Clusters that were paused because the management cluster was restored from a backup.
//
// What runs may be newer than the restored objects: Machines were created, replaced and deleted after the backup. Controllers that act on
// the old state would create machines in place of ones that run, and leave these alone for ever. So a restore pauses each Cluster, with the
// time of the backup in an annotation. The steps of this controller, for Clusters with that annotation:
//
//	confirmed  a Cluster that users have resumed loses the annotation
//	compare    a Cluster whose Nodes and Machines match is resumed; otherwise condition BackupUpToDate reports the differences
//
// Nothing here creates or deletes Machines or Nodes: a Node cannot become a Machine again, because its bootstrap data and the object of its
// infrastructure are lost. What users can do is in docs/book/backup.md. Marking Clusters belongs to who restores.
package restored
