// Package docs answers: do the documents lead where they say?
//
// It has a test and nothing else. Links between documents have to resolve,
// anchors included; so have paths of documents that stand in code, scripts and
// texts for users; and every document has to stand in the index of its folder.
package docs
