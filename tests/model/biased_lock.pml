// SPDX-License-Identifier: BSD-3-Clause
// match/biased_lock.hpp, and how match/shards.hpp closes over it. Any of three threads may
// come first, and be favoured; later any one that has the lock may be, once more, and the one
// that was last always again, whether it was watched before or not. A favoured thread's stores to
// `inside` leave its processor later, in their order.
// BROKEN has no barrier. BROKEN_END takes a favour that is ending for one that has gone.
// BROKEN_WORD has one word for both favours. BROKEN_GATE remembers a favour before the look
// at the gate. BROKEN_AGAIN gives the last favour to another thread. BROKEN_LEAVE gives the lock back
// before the matcher has ended the turn.
#define ENDING 1              // of a favour, as the next two
#define OVER 2
#define WATCHED 3
#define GONE OVER             // nobody's yet
#define FREE 0
#define FAVOUR(thread, number) (8 * ((thread) + 1) + 4 * (number))
#define STATE(bias) ((bias) % 4)
#define WITH(bias, state) ((bias) - STATE(bias) + (state))
#define THREAD(bias) ((bias) / 8 - 1)
#define NUMBER(bias) (((bias) / 4) % 2)
#define NONE 2                // of a thread's numbers of favours
byte bias = FREE;
bit given;                    // number of the last favour
bit held, shut, gate_lock;
bit inside[2];                // for each number
byte users;                   // of what the lock protects
chan stores_0 = [2] of { bit, bit };  // to inside, on their way, from each thread
chan stores_1 = [2] of { bit, bit };
chan stores_2 = [2] of { bit, bit };

#ifdef BROKEN_END
#define over(bias) (STATE(bias) == OVER || STATE(bias) == ENDING)
#else
#define over(bias) (STATE(bias) == OVER)
#endif
#ifdef BROKEN_WORD
#define word(number) 0
#else
#define word(number) (number)
#endif

active proctype memory() {
  bit number, value;
end:
  do
  :: atomic { stores_0 ? number, value -> inside[word(number)] = value }
  :: atomic { stores_1 ? number, value -> inside[word(number)] = value }
  :: atomic { stores_2 ? number, value -> inside[word(number)] = value }
  od
}

inline use() {
  users++;
  assert(users == 1);
  users--
}

// What is done by the lock, or with the gate closed, ends as a turn of the first favour does
// (TurnsAtShard). Stores leave in their order, so the lock's comes later.
inline use_and_end() {
  use();
  stores ! 0, 0;
  empty(stores)
}
// Likewise, by the lock.
inline use_and_leave() {
  use();
#ifdef BROKEN_LEAVE
  held = 0;
#endif
  stores ! 0, 0;
  empty(stores);
  held = 0
}

// By what was seen of the bias.
inline revoke() {
  bias = WITH(seen, ENDING);
#ifndef BROKEN
  empty(stores_0) && empty(stores_1) && empty(stores_2);  // barrier in all threads
#endif
  !inside[word(NUMBER(seen))];
  bias = WITH(seen, OVER)
}

inline revoke_of_another() {
  if
  :: seen == FREE || over(seen) -> skip
  :: else ->
     if
     :: THREAD(seen) == me -> skip
     :: THREAD(seen) != me && STATE(seen) == WATCHED -> bias = WITH(seen, OVER)
     :: else -> revoke()
     fi
  fi
}

#ifdef BROKEN_AGAIN
#define is_mine(bias) (bias != GONE)
#define mine_again(bias) FAVOUR(me, NUMBER(bias))
#else
#define is_mine(bias) (bias != GONE && THREAD(bias) == me)
#define mine_again(bias) bias
#endif

inline watch_me() {
  if
  :: STATE(bias) == OVER && is_mine(bias) -> bias = WITH(mine_again(bias), WATCHED)
  :: STATE(bias) == OVER && given == 0 && !is_mine(bias) -> bias = WITH(FAVOUR(me, 1), WATCHED)
  :: skip
  fi
}

// For what it may be favoured, it is remembered the next time.
inline favour_me() {
  watch_me();
  if
  :: STATE(bias) == WATCHED ->
     assert(THREAD(bias) == me);
     given = NUMBER(bias);
     bias = WITH(bias, 0)
  :: skip
  fi
}

inline remember() {
  if
  :: bias == FAVOUR(me, 0) -> mine = 0
  :: bias == FAVOUR(me, 1) -> mine = 1
  :: else -> skip
  fi
}

// alone: whether it may take the favoured thread's way, which looks at no gate.
inline call() {
  alone = 0;
  if
  :: mine != NONE ->
     stores ! mine, 1;
     if
     :: bias == FAVOUR(me, mine) -> alone = 1; use(); stores ! mine, 0
     :: else -> stores ! mine, 0; mine = NONE
     fi
  :: else -> skip
  fi;
  do
  :: alone -> break
  :: !alone && shut ->
     atomic { !gate_lock -> gate_lock = 1 };
     if
     :: shut -> use_and_end(); gate_lock = 0; break
     :: else -> gate_lock = 0
     fi
  :: !alone && !shut ->
     atomic { !held && empty(stores) -> held = 1 };  // an exchange waits for stores
     seen = bias;
     if
     :: over(seen) ->
        if
        :: shut -> held = 0
        :: else -> watch_me(); use_and_leave(); break
        fi
     :: true ->
        if
        :: seen == FREE -> bias = FAVOUR(me, 0)
        :: else -> revoke_of_another()
        fi;
#ifdef BROKEN_GATE
        remember();
#endif
        if
        :: shut -> held = 0
        :: else ->
           remember();
           favour_me();
           use_and_leave();
           break
        fi
     fi
  od;
  seen = 0
}

// A wildcard receive comes, and later its message.
inline close_and_reopen() {
  atomic { !gate_lock -> gate_lock = 1 };
  shut = 1;
  !held;
  seen = bias;
  revoke_of_another();
  use_and_end();
  seen = 0;
  gate_lock = 0;
  atomic { !gate_lock -> gate_lock = 1 };
  use_and_end();
  shut = 0;
  gate_lock = 0
}

proctype caller(byte me; chan stores) {
  bit alone;
  byte mine = NONE, seen;
  call();
  call();
  call()
}

proctype closer(byte me; chan stores) {
  bit alone;
  byte mine = NONE, seen;
  close_and_reopen();
  call();
  close_and_reopen()
}

init { atomic { run caller(0, stores_0); run caller(1, stores_1); run closer(2, stores_2) } }
