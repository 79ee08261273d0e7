package strict

import "strings"

// Nearest returns the word of words that word may have been meant to be: equal except for case, or at most two typing
// errors away. It allows fewer errors for short words, which are all alike. It returns "" if none is near.
func Nearest(word string, words []string) string {
	best, bestSlips := "", 3
	for _, w := range words {
		if strings.EqualFold(w, word) {
			return w
		}
		limit := 2
		if min(len(w), len(word)) < 5 {
			limit = 1
		}
		if diff := len(w) - len(word); diff > limit || diff < -limit {
			continue
		}
		if n := slips(strings.ToLower(word), strings.ToLower(w)); n <= limit && n < bestSlips {
			best, bestSlips = w, n
		}
	}
	return best
}

// slips counts the typing errors between two words: letters added, left out, changed, or swapped with a neighbour
// (Damerau–Levenshtein distance, restricted form).
func slips(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
