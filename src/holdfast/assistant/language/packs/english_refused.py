"""English words for times that nobody can work out, and for small talk."""

from __future__ import annotations

from typing import Final

from holdfast.assistant.language.lexicon import Words

REFUSED: Final[Words] = {
    "trouble": {
        "dawn|sunrise|sunset|dusk|sunup|sundown|twilight|daybreak|first light|nightfall|"
        "golden hour|solar noon|high tide|low tide": "sun",
        "full moon|new moon|blue moon|half moon|the full moon|solstice|equinox|"
        "winter solstice|summer solstice": "moon",
        "easter|easter sunday|easter monday|good friday|chinese new year|lunar new year|ramadan|"
        "eid|eid al-fitr|diwali|hanukkah|chanukah|passover|yom kippur|rosh hashanah|pentecost|"
        "ascension day|mardi gras|ash wednesday|holi|palm sunday|carnival|whit monday|"
        "mid-autumn festival|fat tuesday|maundy thursday|canadian thanksgiving": "feast",
        "at some point|some time|sometime|someday|some day|eventually|later on|one of these days|"
        "at a good time|at the right time|whenever you can|when you can|at your convenience|"
        "when convenient|sooner or later|in a bit|in a while|in a little while|in the future|"
        "at some time|any time|anytime|whenever|later|later today|later this week|soon|"
        "when i have time|at a convenient time|before long|after a while|shortly|"
        "sometime soon|at an appropriate time|in due course|at the usual time|bedtime|"
        "at dinner time|at dinnertime|at breakfast|at dinner|at supper|at suppertime|at bedtime|after work|after lunch|before lunch|"
        "before bed|after dinner|before dinner|after breakfast": "vague_time",
        "every once in a while|once in a while|every now and then|every now and again|"
        "now and then|now and again|from time to time|occasionally|periodically|regularly|"
        "every so often|on a regular basis|at regular intervals|frequently|repeatedly|"
        "semiweekly|semi-weekly|semimonthly|semi-monthly|every few|often|sometimes|at random|randomly|at irregular intervals|continuously|"
        "constantly|all the time|as often as possible|every bit": "vague_recurrence",
        "on even days|on odd days|on even-numbered days|on odd-numbered days|on even dates|on odd dates|"
        "every even day|every odd day|on school days|every school day": "vague_recurrence",
        "bimonthly|bi-monthly": "bimonthly",
        "|".join(
            f"{before} {season}"
            for season in ("spring", "summer", "autumn", "fall", "winter", "springtime")
            for before in ("in", "in the", "every", "each", "this", "next", "during the",
                           "over the", "in early", "in late")
        ): "unknown_date",
        "over the weekend|over the weekends|during the weekend|at the w/e|this w/e|over the w/e": "no_day",
        "during the holidays|over the holidays|in the holidays|on vacation|during vacation|"
        "over christmas|over the break|during the break|during my vacation|during my holidays|"
        "over easter": "unknown_date",
    },
    "birthday": {
        "birthday|anniversary|payday|pay day|wedding|graduation|due date|deadline|"
        "name day|wedding anniversary|work anniversary": 1,
    },
    "event": {
        "when|whenever|if|as soon as|every time|each time|once the|once my|once i|once it|once we|"
        "the moment|unless|in case|after i|before i|"
        "provided that|anytime|any time|the next time|next time|while": 1,
    },
    "event_inside": {"as soon as|every time|each time|once the|once my|once i|once it|once we|"
    "the moment|after i|before i|whenever|the next time|next time|when i get|when i leave|"
    "when i arrive|when i wake|when i come|when i'm|when it rains|when it snows|the minute i|"
    "when i finish|when i go|when i reach": 1},
    "vague_part": {"mid|early|late|middle of|the middle of|in the middle of|"
    "around the middle of|towards the end of|toward the end of|sometime in|some time in|"
    "at some point in|in the course of|around the end of": 1},
    "vague_det": {"one of these|one of those|one of the coming|one of the next|most|certain|"
    "some of the|a random|random|on random|one of the next few|some random": 1},
    "chat": {
        "good morning|good evening|good afternoon|good night|hello|hi|hey|hi there|hello there|"
        "hey there|thanks|thank you|thank you very much|thanks a lot|how are you|how are you doing|"
        "what's up|whats up|sup|ok|okay|yes|no|nice|cool|great|bye|goodbye|see you|"
        "see you tomorrow|lol|haha|test|yo|howdy|who are you|what can you do|help|"
        "what are you|nice to meet you|good job|well done|never mind|nevermind|sorry|"
        "how's it going|good day|greetings|welcome|have a nice day|see you later|"
        "talk to you later|thank you so much|thanks so much|that's great|sounds good|"
        "how do you do|good bye|you're great|i love you|tell me about yourself|"
        "are you there|are you a robot|are you human|what is your name|what's your name|"
        "how old are you|happy birthday|merry christmas|happy new year|ping|hmm|ok thanks|"
        "great thanks|perfect|awesome|got it|i see|no thanks|yes please|good to see you|"
        "good morning everyone|have a great day|see you on monday|see you soon|"
        "how was your day|how is your day|have a good weekend|good weekend|what do you do": 1,
    },
    "thanks": {
        "thanks|thank you|thank you very much|thanks a lot|thank you so much"
        "|thanks so much|many thanks|ok thanks|great thanks|thx|cheers|thanks again|ty"
        "|tysm": 1,
    },
    "statement": {
        "that was|that's|that is|that helped|that helps|that works|it was|it's|it is"
        "|this is|this was|you're|you are|you were|you did|you have been|you've been|i'm"
        "|i am|i was|i love|i like|i feel|i appreciate|i really appreciate|i hope"
        "|how are|how is|how's|how was|who are|are you|nice to|good to|glad|see you"
        "|much appreciated|love it|love that|no worries|my pleasure|same to you|you too"
        "|not bad|you rock|well that|haha|what a|wow|that sounds|sounds|looks good"
        "|looks great|i didn't|i don't|i can't believe": 1,
    },
}  # fmt: skip
