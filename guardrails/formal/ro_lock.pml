/* RO-Lock as a model for spin: one proposer that tries everything, one lock, one committer.
 *
 * Versions stand for content hashes; anchors are what the lock last saw. The claims:
 *   no commit in which tests changed after the lock;
 *   no commit in which source changed while tests were writable;
 *   nothing is ever written outside the one writable area.
 * ro_lock.py is the same machine; its stateful test walks the same moves on real trees.
 *
 *   spin -a ro_lock.pml && gcc -o pan pan.c && ./pan -a
 */
mtype = { open, test_genesis, locked, logic_genesis, committed, abandoned };

mtype state = open;
byte source = 0, tests = 0;              /* the tree */
byte source_anchor = 0, tests_anchor = 0; /* what the lock holds */
byte tests_at_lock = 0, source_at_open = 0;
byte attempts = 4;
bool tests_moved_after_lock = false, source_moved_before_lock = false;
byte commits = 0;

#define anchored (source == source_anchor && tests == tests_anchor)

/* A judged attempt: the lock compares what is offered with its anchors, area by area. */
inline offer(area) {
    byte s = source, t = tests;
    if
    :: area == 0 -> s = s + 1
    :: area == 1 -> t = t + 1
    :: area == 2 -> s = s + 1; t = t + 1
    fi;
    attempts = attempts - 1;
    if
    :: true -> skip /* refused: the tree stays */
    :: state == test_genesis && s == source_anchor && anchored ->
        source = s; tests = t; source_anchor = s; tests_anchor = t;
        if
        :: source != source_at_open -> source_moved_before_lock = true
        :: else -> skip
        fi
    :: state == logic_genesis && t == tests_anchor && anchored ->
        source = s; tests = t; source_anchor = s; tests_anchor = t;
        if
        :: tests != tests_at_lock -> tests_moved_after_lock = true
        :: else -> skip
        fi
    :: else -> skip
    fi;
    s = 0; t = 0
}

active proctype proposer() {
    do
    :: state == committed || state == abandoned -> break
    :: else ->
        atomic {
            if
            :: state == open && anchored -> source_at_open = source; state = test_genesis
            :: state == open && anchored -> tests_at_lock = tests; source_at_open = source; state = locked
            :: state == test_genesis && anchored -> tests_at_lock = tests; state = locked
            :: state == locked && anchored -> state = logic_genesis
            :: attempts > 0 && (state == test_genesis || state == logic_genesis) -> offer(0)
            :: attempts > 0 && (state == test_genesis || state == logic_genesis) -> offer(1)
            :: attempts > 0 && (state == test_genesis || state == logic_genesis) -> offer(2)
            :: state == logic_genesis && anchored -> commits = commits + 1; state = committed
            :: state != open -> state = abandoned
            fi
        }
    od
}

/* Somebody writes behind the lock's back: every later step must notice. */
active proctype intruder() {
    byte left = 1;
    do
    :: atomic {
            left > 0 && state != committed && state != abandoned ->
            left = left - 1;
            if
            :: tests = tests + 1;
                if
                :: state == logic_genesis || state == locked -> tests_moved_after_lock = true
                :: else -> skip
                fi
            :: source = source + 1;
                if
                :: state == open || state == test_genesis -> source_moved_before_lock = true
                :: else -> skip
                fi
            :: skip
            fi
        }
    :: left == 0 || state == committed || state == abandoned -> break
    od
}

ltl tests_fixed { [] (state == committed -> (tests == tests_at_lock && !tests_moved_after_lock)) }
ltl source_fixed { [] (state == committed -> !source_moved_before_lock) }
ltl tests_genesis_only { [] ((state == test_genesis && !source_moved_before_lock) -> source == source_at_open) }
ltl one_commit { [] (commits <= 1) }
