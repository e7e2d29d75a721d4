// Package conversion converts objects between the versions of their kinds, without loss in either direction: in the process, for
// code that speaks another version than the stored one, and for API servers, as a webhook.
//
// It has all kinds of the API with several versions. Other providers add theirs with New; they do not belong here, and neither does which
// version is stored.
package conversion
